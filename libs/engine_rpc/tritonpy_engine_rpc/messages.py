"""Messages of other processes as typed values, and errors as JSON: code, text, retry delay (s)."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Annotated, Any, TypeVar

import msgspec

import tritonpy
from tritonpy import TritonError, error_of
from tritonpy.metrics import FailureReason
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
        raise ProtocolError(
            f"a frame of kind {frame.kind} has {len(words)} words instead of {count}"
        )
    return words


def encode_error(error: TritonError) -> list[Any]:
    """Return `error` as a JSON list."""
    more = [] if error.retry_after_s is None else [error.retry_after_s]
    return [int(error.code), error.message, *more]


def decode_error(payload: Sequence[Any], reason: FailureReason | None = None) -> TritonError:
    """Return the encoded error. Raises `ValueError` for an invalid code."""
    error = error_of(payload[0], payload[1], reason)
    if len(payload) > 2 and isfinite(payload[2]):
        error.retry_after_s = max(0.0, payload[2])
    return error


def encode_named_error(error: TritonError) -> list[Any]:
    """Return `error` as a JSON list that includes its class name."""
    code, message, *more = encode_error(error)
    return [code, message, type(error).__name__, *more]


def decode_named_error(payload: Sequence[Any]) -> TritonError:
    """Return the error that `encode_named_error` encoded.

    A class that the core does not define is replaced by the class of its code.
    """
    code, message, name, *more = payload
    kind = getattr(tritonpy, name, None) if name in tritonpy.__all__ else None
    error = decode_error((code, message, *more))
    if isinstance(kind, type) and issubclass(kind, TritonError) and kind is not type(error):
        named = kind(message)
        named.retry_after_s = error.retry_after_s
        return named
    return error
