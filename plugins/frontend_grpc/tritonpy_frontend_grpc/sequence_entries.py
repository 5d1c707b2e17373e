"""What a message says of its sequence: some of its parameters, which differ from request to request where all else is the same.

Pure; knows no transport.
"""

from __future__ import annotations

from functools import lru_cache

from google.protobuf.message import DecodeError

from tritonpy import InvalidArgument, SequenceInfo
from tritonpy_frontend_grpc.parameters import SEQUENCE_KEYS, parse_parameters
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest

# An entry of a map is a message: its key is field 1, and as libraries write it comes first.
_BEGINNINGS = tuple([b"\x0a" + bytes([len(key)]) + key.encode() for key in SEQUENCE_KEYS])


def is_of_sequence(raw: bytes, start: int) -> bool:
    """Say whether the entry of the parameters that begins at `start` speaks of the sequence."""
    return raw.startswith(_BEGINNINGS, start)


@lru_cache(maxsize=4096)
def sequence_of(fields: bytes) -> SequenceInfo | None:
    """Return what fields of a message say of its sequence; None for no sequence.

    Raises InvalidArgument where that is wrong, and where they say something else too: then the message has to be parsed as a whole.
    """
    try:
        message = ModelInferRequest.FromString(fields)
    except DecodeError:
        raise InvalidArgument("what should be parameters is none") from None
    parameters = message.parameters
    if [field.name for field, _ in message.ListFields()] != ["parameters"] or not {*parameters} <= {*SEQUENCE_KEYS}:
        raise InvalidArgument("what should speak of the sequence speaks of something else")
    return parse_parameters(parameters).sequence
