"""Parsing of request parameters: those with a meaning in the protocol, and those for the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from tritonpy import InvalidArgument, ParameterValue, SequenceInfo
from tritonpy.frontend import NO_PARAMETERS

if TYPE_CHECKING:
    from tritonpy_protos.grpc_service_pb2 import InferParameter

SEQUENCE_KEYS = frozenset({"sequence_id", "sequence_start", "sequence_end"})
EMPTY_FINAL = "triton_enable_empty_final_response"
_UINT64 = (
    2**64 - 1
)  # ids, priorities and timeouts are unsigned in the server, signed in the protocol
_CUSTOM = frozenset({"int64_param", "bool_param", "string_param", "double_param"})


class RequestParameters(msgspec.Struct, frozen=True):
    """The parsed parameters of a request; `custom` are those for the model."""

    custom: Mapping[str, ParameterValue] = NO_PARAMETERS
    sequence: SequenceInfo | None = None
    priority: int = 0
    timeout_us: int = 0


NONE_GIVEN = RequestParameters()


def parse_parameters(parameters: Mapping[str, InferParameter]) -> RequestParameters:
    """Parse the parameters of a request.

    Raises InvalidArgument for a wrong type, an invalid value or a reserved key.
    """
    custom: dict[str, ParameterValue] = {}
    known: dict[str, int | str | bool] = {}
    for key, parameter in parameters.items():
        choices = _KNOWN.get(key)
        choice = parameter.WhichOneof("parameter_choice")
        if choices is not None:
            if choice is None or choice not in choices:
                raise _wrong_type(key, " or ".join(choices))
            known[key] = getattr(parameter, choice)
        elif key.startswith("triton_"):
            raise InvalidArgument(
                "parameter keys starting with 'triton_' are reserved for Triton usage. "
                f"Only the following keys starting with 'triton_' are allowed: {EMPTY_FINAL}"
            )
        elif choice in _CUSTOM:
            custom[key] = getattr(parameter, choice)
        else:
            raise _wrong_type(key, "int64_param, bool_param, or string_param")
    return _make_parameters(known, custom)


def wants_empty_final(parameters: Mapping[str, InferParameter]) -> bool:
    """Return whether the client requests a message for an empty final response.

    Only decoupled models have such responses.
    """
    return EMPTY_FINAL in parameters and parameters[EMPTY_FINAL].bool_param


_KNOWN: Mapping[str, tuple[str, ...]] = {
    "sequence_id": ("int64_param", "string_param"),
    "sequence_start": ("bool_param",),
    "sequence_end": ("bool_param",),
    "priority": ("int64_param", "uint64_param"),
    "timeout": ("int64_param",),
    EMPTY_FINAL: ("bool_param",),
}


def _make_parameters(
    known: Mapping[str, int | str | bool], custom: Mapping[str, ParameterValue]
) -> RequestParameters:
    priority, timeout = int(known.get("priority", 0)), int(known.get("timeout", 0))
    if priority < 0:
        raise InvalidArgument("invalid value for 'priority', expected value >= 0.")
    return RequestParameters(custom, _sequence(known), priority, timeout & _UINT64)


def _sequence(known: Mapping[str, int | str | bool]) -> SequenceInfo | None:
    given = known.get("sequence_id", 0)
    if not given:  # 0 and "" mean no sequence, regardless of the flags
        return None
    start, end = bool(known.get("sequence_start")), bool(known.get("sequence_end"))
    return SequenceInfo(given if isinstance(given, str) else given & _UINT64, start, end)


def _wrong_type(key: str, expected: str) -> InvalidArgument:
    return InvalidArgument(f"invalid value type for '{key}' parameter, expected {expected}.")
