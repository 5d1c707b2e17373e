"""Response parameters `sequence_id`, `sequence_start` and `sequence_end` between steps."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import InvalidArgument, ParameterValue, SequenceInfo

_NONE = SequenceInfo(0)
_UINT64 = (1 << 64) - 1


def next_sequence(
    parameters: Mapping[str, ParameterValue], before: SequenceInfo | None
) -> SequenceInfo | None:
    """Return the sequence of the steps that follow a response with `parameters`.

    `before` is the sequence of the request. Any of the three parameters replaces both flags.
    Without `sequence_id` the id stays. Raises `InvalidArgument` for values of a wrong type.
    """
    start, end = _flag(parameters, "sequence_start"), _flag(parameters, "sequence_end")
    given = parameters.get("sequence_id")
    if given is None:
        if start is None and end is None:
            return before
        return SequenceInfo((before or _NONE).id, bool(start), bool(end))
    if isinstance(given, bool) or not isinstance(given, (int, str)):
        raise InvalidArgument(
            "expected parameter 'sequence_id' to be TRITONSERVER_PARAMETER_INT or "
            "TRITONSERVER_PARAMETER_STRING"
        )
    return SequenceInfo(
        given if isinstance(given, str) else given & _UINT64, bool(start), bool(end)
    )


def sequence_parameters(sequence: SequenceInfo | None) -> Mapping[str, ParameterValue]:
    """Return the response parameters for `sequence`. Every ensemble response has them."""
    current = sequence or _NONE
    return {"sequence_id": current.id, "sequence_start": current.start, "sequence_end": current.end}


def _flag(parameters: Mapping[str, ParameterValue], name: str) -> bool | None:
    given = parameters.get(name)
    if given is not None and not isinstance(given, bool):
        raise InvalidArgument(f"expect parameter '{name}' to be TRITONSERVER_PARAMETER_BOOL")
    return given
