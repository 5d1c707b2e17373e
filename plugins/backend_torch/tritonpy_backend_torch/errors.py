"""Conversion of PyTorch errors to Triton's errors."""

from __future__ import annotations

from tritonpy import Internal, TritonError


def load_error(model: str, error: Exception) -> TritonError:
    """Return the `TritonError` for a PyTorch exception raised while `model` was loaded."""
    return (
        error
        if isinstance(error, TritonError)
        else Internal(f"failed to load model '{model}': {_text(error)}")
    )


def execution_error(error: Exception) -> TritonError:
    """Return the `TritonError` that clients receive for a failed execution."""
    return (
        error
        if isinstance(error, TritonError)
        else Internal(f"PyTorch execute failure: {_text(error)}")
    )


def _text(error: Exception) -> str:
    return str(error).strip() or type(error).__name__
