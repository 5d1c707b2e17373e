"""Conversion of TensorFlow errors to Triton's errors."""

from __future__ import annotations

from tritonpy import Internal, TritonError


def to_triton_error(error: Exception) -> TritonError:
    """Return the `TritonError` for a TensorFlow exception, without Python details."""
    if isinstance(error, TritonError):
        return error
    return Internal(str(getattr(error, "message", "") or error))
