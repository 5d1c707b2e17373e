"""What a worker says, checked: a worker that says anything else is broken."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

from tritonpy.ipc import Frame, ProtocolError

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Unsigned = Annotated[int, msgspec.Meta(ge=0)]
_Said = TypeVar("_Said")


def convert(said: Any, kind: type[_Said]) -> _Said:
    """Return the JSON value `said` as a `kind`. Raises ProtocolError where it is none."""
    try:
        return msgspec.convert(said, kind)
    except msgspec.ValidationError as error:
        raise ProtocolError(f"a worker said what it should not: {error}") from error


def first_words(frame: Frame, count: int) -> tuple[int, ...]:
    """Return the first `count` words of `frame`. Raises ProtocolError where it has fewer."""
    words = frame.words[:count]
    if len(words) < count:
        raise ProtocolError(f"a frame of kind {frame.kind} has {len(words)} words instead of {count}")
    return words
