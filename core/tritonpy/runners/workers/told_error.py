"""An error on its way between a worker and the server: code, text, and after how many seconds to come again, where it says that."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from tritonpy.errors import FailureReason, ResourceExhausted, TritonError, error_of


def tell_error(error: TritonError) -> list[Any]:
    """Return what travels."""
    more = [error.retry_after_s] if isinstance(error, ResourceExhausted) else []
    return [int(error.code), error.message, *more]


def told_error(said: Sequence[Any], reason: FailureReason | None = None) -> TritonError:
    """Return the error that `said` tells of. Raises ValueError for a code that there is not."""
    error = error_of(said[0], said[1], reason)
    if isinstance(error, ResourceExhausted) and len(said) > 2 and isfinite(said[2]):
        error.retry_after_s = max(0.0, said[2])
    return error
