"""The memory that a model's weights take in the types of the computation. Pure.

CTranslate2 does not report it. The keys and values of running texts take additional memory.
"""

from __future__ import annotations

from math import prod

from tritonpy_backend_transformer.model_file import ModelFile, Weight

_WEIGHT_SIZES = {"int8": 1, "int16": 2, "float16": 2, "bfloat16": 2, "float32": 4}
_SCALE = 4  # bytes for each row of an 8-bit weight


def weight_bytes(file: ModelFile, compute_type: str) -> int:
    """Return the size of all weights in bytes.

    `compute_type` is CTranslate2's, such as int8_float32.
    """
    first, _, second = compute_type.partition("_")
    weight_size = _WEIGHT_SIZES[first]
    float_size = _WEIGHT_SIZES[second] if second else max(weight_size, 2) if first != "int16" else 4
    return sum(
        _bytes(name, weight, weight_size, float_size) for name, weight in file.weights.items()
    )


def _bytes(name: str, weight: Weight, weight_size: int, float_size: int) -> int:
    if weight.item_size == 0:
        return 0
    if name.endswith("/weight") and len(weight.shape) > 1:
        scales = weight.shape[0] * _SCALE if weight_size == 1 and weight.is_float else 0
        return prod(weight.shape) * weight_size + scales
    return prod(weight.shape) * (float_size if weight.is_float else weight.item_size)
