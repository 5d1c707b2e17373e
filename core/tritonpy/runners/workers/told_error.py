"""An error on its way between a worker and the server: code, text, and after how many seconds to come again, where it says that."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from tritonpy import errors
from tritonpy.errors import FailureReason, TritonError, error_of


def tell_error(error: TritonError) -> list[Any]:
    """Return what travels."""
    more = [] if error.retry_after_s is None else [error.retry_after_s]
    return [int(error.code), error.message, *more]


def told_error(said: Sequence[Any], reason: FailureReason | None = None) -> TritonError:
    """Return the error that `said` tells of. Raises ValueError for a code that there is not."""
    error = error_of(said[0], said[1], reason)
    if len(said) > 2 and isfinite(said[2]):
        error.retry_after_s = max(0.0, said[2])
    return error


def tell_named_error(error: TritonError) -> list[Any]:
    """Return what travels where some errors are told apart by their class."""
    code, message, *more = tell_error(error)
    return [code, message, type(error).__name__, *more]


def told_named_error(said: Sequence[Any]) -> TritonError:
    """Return the error that `tell_named_error` told of; a class that is not the core's comes back as that of its code."""
    code, message, name, *more = said
    kind = getattr(errors, name, None)
    told = told_error((code, message, *more))
    if isinstance(kind, type) and issubclass(kind, TritonError) and kind is not type(told):
        named = kind(message)
        named.retry_after_s = told.retry_after_s
        return named
    return told
