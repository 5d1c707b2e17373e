"""What a backend raised, as clients hear of it."""

from __future__ import annotations

from tritonpy.errors import FailureReason, Internal, TritonError


def backend_error(error: BaseException) -> TritonError:
    """Return what a backend raised as an error for the client, with its own text and code."""
    if isinstance(error, TritonError):
        reason = error.reason if error.reason is FailureReason.CANCELED else FailureReason.BACKEND
        return type(error)(error.message, reason)
    return Internal(str(error) or type(error).__name__, FailureReason.BACKEND)
