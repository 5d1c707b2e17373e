"""What a message says of its sequence: some of its parameters, which differ from request to request where all else is the same.

Pure; knows no transport.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from tritonpy import InvalidArgument, SequenceInfo
from tritonpy_frontend_grpc.parameters import SEQUENCE_KEYS, parse_parameters
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest

if TYPE_CHECKING:
    from tritonpy_protos.grpc_service_pb2 import InferParameter

# An entry of a map is a message: its key is field 1, and as libraries write it comes first.
_BEGINNINGS = tuple([b"\x0a" + bytes([len(key)]) + key.encode() for key in SEQUENCE_KEYS])


def is_of_sequence(raw: bytes, start: int) -> bool:
    """Say whether the entry of the parameters that begins at `start` speaks of the sequence."""
    return raw.startswith(_BEGINNINGS, start)


@lru_cache(maxsize=4096)
def sequence_of(pieces: tuple[bytes, ...]) -> SequenceInfo | None:
    """Return what pieces of a message, each some whole fields, say of its sequence; None for no sequence.

    Raises InvalidArgument where that is wrong, and where they say something else too: then the message has to be parsed as a whole.
    """
    parameters: dict[str, InferParameter] = {}
    for piece in pieces:  # not joined: a field that has no end in its piece would take its rest from the next
        parameters.update(_parameters(piece))
    return parse_parameters(parameters).sequence


def _parameters(piece: bytes) -> Mapping[str, InferParameter]:
    try:
        message = ModelInferRequest.FromString(piece)
    except DecodeError:
        raise InvalidArgument("what should be parameters is none") from None
    parameters = message.parameters
    if [field.name for field, _ in message.ListFields()] != ["parameters"] or not SEQUENCE_KEYS.issuperset(parameters):
        raise InvalidArgument("what should speak of the sequence speaks of something else")
    return parameters
