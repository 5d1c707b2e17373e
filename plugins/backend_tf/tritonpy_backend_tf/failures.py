"""Errors of TensorFlow in the words of Triton."""

from __future__ import annotations

from tritonpy import Internal, TritonError


def failure_of(error: Exception) -> TritonError:
    """Return what clients see of an exception that TensorFlow raised: its text, without what belongs to Python."""
    if isinstance(error, TritonError):
        return error
    return Internal(str(getattr(error, "message", "") or error))
