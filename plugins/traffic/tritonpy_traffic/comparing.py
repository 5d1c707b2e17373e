"""Whether two targets answered alike. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tritonpy import InferResponse, Tensor
from tritonpy_traffic.spec import Tolerance


def difference(
    primary: Sequence[InferResponse],
    shadow: Sequence[InferResponse],
    default: Tolerance,
    by_output: Mapping[str, Tolerance],
) -> str:
    """Return what the shadow's answers have otherwise, as text, empty where nothing. Empty answers count for nothing."""
    ours = [response for response in primary if not response.empty]
    theirs = [response for response in shadow if not response.empty]
    if len(ours) != len(theirs):
        return f"{len(theirs)} answers instead of {len(ours)}"
    for one, other in zip(ours, theirs, strict=True):
        text = _between(one, other, default, by_output)
        if text:
            return text
    return ""


def _between(
    primary: InferResponse, shadow: InferResponse, default: Tolerance, by_output: Mapping[str, Tolerance]
) -> str:
    if primary.error is not None or shadow.error is not None:
        return _between_errors(primary, shadow)
    ours = {tensor.name: tensor for tensor in primary.outputs}
    theirs = {tensor.name: tensor for tensor in shadow.outputs}
    if ours.keys() != theirs.keys():
        return f"the outputs {sorted(theirs)} instead of {sorted(ours)}"
    for name, tensor in ours.items():
        text = _between_tensors(tensor, theirs[name], by_output.get(name, default))
        if text:
            return f"output '{name}': {text}"
    return ""


def _between_errors(primary: InferResponse, shadow: InferResponse) -> str:
    if primary.error is None and shadow.error is not None:
        return f"the error '{shadow.error.message}'"
    if primary.error is not None and shadow.error is None:
        return f"an answer instead of the error '{primary.error.message}'"
    return ""  # both failed, each in its own words


def _between_tensors(primary: Tensor, shadow: Tensor, tolerance: Tolerance) -> str:
    if primary.datatype != shadow.datatype:
        return f"datatype {shadow.datatype} instead of {primary.datatype}"
    if tuple(primary.shape) != tuple(shadow.shape):
        return f"shape {list(shadow.shape)} instead of {list(primary.shape)}"
    exact = primary.datatype in {"BYTES", "BOOL"}
    wrong = primary.numpy() != shadow.numpy() if exact else _beyond(_wide(primary), _wide(shadow), tolerance)
    count = int(np.count_nonzero(wrong))
    return f"{count} of {wrong.size} elements differ" if count else ""


def _wide(tensor: Tensor) -> np.ndarray[Any, Any]:
    array = tensor.numpy()
    # half floats and bfloat16 in a type that numpy compares exactly; whole numbers as they are
    return array.astype(np.float64) if tensor.datatype in {"FP16", "BF16", "FP32"} else array


def _beyond(primary: np.ndarray[Any, Any], shadow: np.ndarray[Any, Any], tolerance: Tolerance) -> np.ndarray[Any, Any]:
    if primary.dtype.kind in "iu":
        apart = np.maximum(primary, shadow) - np.minimum(primary, shadow)  # unsigned numbers do not go below 0
        if primary.dtype.kind == "i":
            apart = apart.view(
                apart.dtype.str.replace("i", "u")
            )  # what overflowed is right again as an unsigned number
        return np.asarray(apart > tolerance.absolute + tolerance.relative * np.abs(primary.astype(np.float64)))
    alike = np.isclose(shadow, primary, rtol=tolerance.relative, atol=tolerance.absolute, equal_nan=True)
    return np.asarray(~alike)
