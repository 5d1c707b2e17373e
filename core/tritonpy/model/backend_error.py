"""What a backend raised, as clients hear of it."""

from __future__ import annotations

from tritonpy.errors import FailureReason, Internal, TritonError, exception_text


def backend_error(error: BaseException) -> TritonError:
    """Return what a backend raised as an error for the client, with its own text and code, or with the type of what is no TritonError."""
    if isinstance(error, TritonError):
        reason = error.reason if error.reason is FailureReason.CANCELED else FailureReason.BACKEND
        return type(error)(error.message, reason)
    return Internal(exception_text(error), FailureReason.BACKEND)
