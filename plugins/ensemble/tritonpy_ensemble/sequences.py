"""What an answer says of the sequence that the next steps belong to: the response parameters `sequence_id`, `sequence_start`, `sequence_end`."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import InvalidArgument, ParameterValue, SequenceInfo

_NONE = SequenceInfo(0)
_UINT64 = (1 << 64) - 1


def sequence_of(parameters: Mapping[str, ParameterValue], before: SequenceInfo | None) -> SequenceInfo | None:
    """Return the sequence that an answer with `parameters` goes on with; `before` is that of the request.

    An answer that names one of the three replaces both flags; the id stays as it is where it names none. Raises InvalidArgument for values of a wrong type.
    """
    start, end = _flag(parameters, "sequence_start"), _flag(parameters, "sequence_end")
    given = parameters.get("sequence_id")
    if given is None:
        if start is None and end is None:
            return before
        return SequenceInfo((before or _NONE).id, bool(start), bool(end))
    if isinstance(given, bool) or not isinstance(given, (int, str)):
        raise InvalidArgument(
            "expected parameter 'sequence_id' to be TRITONSERVER_PARAMETER_INT or TRITONSERVER_PARAMETER_STRING"
        )
    return SequenceInfo(given if isinstance(given, str) else given & _UINT64, bool(start), bool(end))


def parameters_of(sequence: SequenceInfo | None) -> Mapping[str, ParameterValue]:
    """Return the response parameters that tell of `sequence`: every answer of an ensemble has them."""
    told = sequence or _NONE
    return {"sequence_id": told.id, "sequence_start": told.start, "sequence_end": told.end}


def _flag(parameters: Mapping[str, ParameterValue], name: str) -> bool | None:
    given = parameters.get(name)
    if given is not None and not isinstance(given, bool):
        raise InvalidArgument(f"expect parameter '{name}' to be TRITONSERVER_PARAMETER_BOOL")
    return given
