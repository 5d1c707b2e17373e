"""Conversion of messages of other processes to typed values."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

from tritonpy_ipc import Frame, ProtocolError

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Unsigned = Annotated[int, msgspec.Meta(ge=0)]
_MessageType = TypeVar("_MessageType")


def convert(message: Any, kind: type[_MessageType]) -> _MessageType:
    """Return the JSON value `message` as a `kind`. Raises `ProtocolError` if it is invalid."""
    try:
        return msgspec.convert(message, kind)
    except msgspec.ValidationError as error:
        raise ProtocolError(f"invalid message of a worker: {error}") from error


def first_words(frame: Frame, count: int) -> tuple[int, ...]:
    """Return the first `count` words of `frame`. Raises `ProtocolError` if it has fewer."""
    words = frame.words[:count]
    if len(words) < count:
        raise ProtocolError(f"a frame of kind {frame.kind} has {len(words)} words instead of {count}")
    return words
