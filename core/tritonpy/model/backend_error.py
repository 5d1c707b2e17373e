"""Conversion of a backend's exceptions into client errors."""

from __future__ import annotations

from tritonpy.errors import FailureReason, Internal, TritonError, exception_text


def backend_error(error: BaseException) -> TritonError:
    """Return the client error for an exception of a backend.

    A `TritonError` keeps its text and code. Any other exception becomes `Internal` with the name of
    its type.
    """
    if isinstance(error, TritonError):
        reason = error.reason if error.reason is FailureReason.CANCELED else FailureReason.BACKEND
        return type(error)(error.message, reason)
    return Internal(exception_text(error), FailureReason.BACKEND)
