"""Comparison of the responses of two targets. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tritonpy import InferResponse, Tensor
from tritonpy_traffic.spec import Tolerance


def describe_difference(
    primary: Sequence[InferResponse],
    shadow: Sequence[InferResponse],
    default: Tolerance,
    by_output: Mapping[str, Tolerance],
) -> str:
    """Return how the shadow's responses differ, as text, or "". Empty responses are ignored."""
    ours = [response for response in primary if not response.empty]
    theirs = [response for response in shadow if not response.empty]
    if len(ours) != len(theirs):
        return f"{len(theirs)} responses instead of {len(ours)}"
    for one, other in zip(ours, theirs, strict=True):
        text = _compare_responses(one, other, default, by_output)
        if text:
            return text
    return ""


def _compare_responses(
    primary: InferResponse,
    shadow: InferResponse,
    default: Tolerance,
    by_output: Mapping[str, Tolerance],
) -> str:
    if primary.error is not None or shadow.error is not None:
        return _compare_errors(primary, shadow)
    ours = {tensor.name: tensor for tensor in primary.outputs}
    theirs = {tensor.name: tensor for tensor in shadow.outputs}
    if ours.keys() != theirs.keys():
        return f"outputs {sorted(theirs)} instead of {sorted(ours)}"
    for name, tensor in ours.items():
        text = _compare_tensors(tensor, theirs[name], by_output.get(name, default))
        if text:
            return f"output '{name}': {text}"
    return ""


def _compare_errors(primary: InferResponse, shadow: InferResponse) -> str:
    if primary.error is None and shadow.error is not None:
        return f"error '{shadow.error.message}' instead of a response"
    if primary.error is not None and shadow.error is None:
        return f"a response instead of error '{primary.error.message}'"
    return ""  # both failed; error texts may differ


def _compare_tensors(primary: Tensor, shadow: Tensor, tolerance: Tolerance) -> str:
    if primary.datatype != shadow.datatype:
        return f"datatype {shadow.datatype} instead of {primary.datatype}"
    if tuple(primary.shape) != tuple(shadow.shape):
        return f"shape {list(shadow.shape)} instead of {list(primary.shape)}"
    exact = primary.datatype in {"BYTES", "BOOL"}
    wrong = (
        primary.numpy() != shadow.numpy()
        if exact
        else _exceeds_tolerance(_widened(primary), _widened(shadow), tolerance)
    )
    count = int(np.count_nonzero(wrong))
    return f"{count} of {wrong.size} elements differ" if count else ""


def _widened(tensor: Tensor) -> np.ndarray[Any, Any]:
    array = tensor.numpy()
    # Small floats become float64, which numpy compares exactly. Integers are unchanged.
    return array.astype(np.float64) if tensor.datatype in {"FP16", "BF16", "FP32"} else array


def _exceeds_tolerance(
    primary: np.ndarray[Any, Any], shadow: np.ndarray[Any, Any], tolerance: Tolerance
) -> np.ndarray[Any, Any]:
    if primary.dtype.kind in "iu":
        # Subtract the smaller number, because unsigned differences cannot be negative.
        apart = np.maximum(primary, shadow) - np.minimum(primary, shadow)
        if primary.dtype.kind == "i":
            # A difference that overflows is correct as an unsigned number.
            apart = apart.view(apart.dtype.str.replace("i", "u"))
        return np.asarray(
            apart > tolerance.absolute + tolerance.relative * np.abs(primary.astype(np.float64))
        )
    close = np.isclose(
        shadow, primary, rtol=tolerance.relative, atol=tolerance.absolute, equal_nan=True
    )
    return np.asarray(~close)
