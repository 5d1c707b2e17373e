"""Errors of PyTorch in the words of Triton."""

from __future__ import annotations

from tritonpy import Internal, TritonError


def load_failure(model: str, error: Exception) -> TritonError:
    """Return what the operator sees of an exception that PyTorch raised while it loaded `model`."""
    return error if isinstance(error, TritonError) else Internal(f"failed to load model '{model}': {_text(error)}")


def run_failure(error: Exception) -> TritonError:
    """Return what clients see of an exception that PyTorch raised while it ran a model."""
    return error if isinstance(error, TritonError) else Internal(f"PyTorch execute failure: {_text(error)}")


def _text(error: Exception) -> str:
    return str(error).strip() or type(error).__name__
