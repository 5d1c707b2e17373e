"""The sequence parameters in a serialized message, which change with every request.

Independent of the transport.
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

# A map entry is a message. Its key is field 1, which libraries write first.
_ENTRY_STARTS = tuple([b"\x0a" + bytes([len(key)]) + key.encode() for key in SEQUENCE_KEYS])


def is_sequence_entry(raw: bytes, start: int) -> bool:
    """Return whether the map entry at `start` is a sequence parameter."""
    return raw.startswith(_ENTRY_STARTS, start)


@lru_cache(maxsize=4096)
def parse_sequence(pieces: tuple[bytes, ...]) -> SequenceInfo | None:
    """Return the sequence in pieces of a message, each of complete fields; None for no sequence.

    Raises InvalidArgument if a parameter is invalid or a piece contains other fields. The caller then
    parses the complete message.
    """
    parameters: dict[str, InferParameter] = {}
    for piece in pieces:  # not joined: a truncated field would continue in the next piece
        parameters.update(_parameters(piece))
    return parse_parameters(parameters).sequence


def _parameters(piece: bytes) -> Mapping[str, InferParameter]:
    try:
        message = ModelInferRequest.FromString(piece)
    except DecodeError:
        raise InvalidArgument("the parameters are not valid") from None
    parameters = message.parameters
    if [field.name for field, _ in message.ListFields()] != ["parameters"] or not SEQUENCE_KEYS.issuperset(parameters):
        raise InvalidArgument("the entry is not a sequence parameter")
    return parameters
