"""How many bytes an instance needs for its tensors. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from tritonpy import ITEMSIZES
from tritonpy_backend_trt.signature import Profile, Shape, Signature, TensorInfo


def byte_size(info: TensorInfo, shape: Shape) -> int:
    """Return the bytes of a tensor of `shape` as it lies in memory."""
    return prod(info.in_memory(shape)) * ITEMSIZES[info.datatype]


def input_sizes(signature: Signature, profiles: Sequence[Profile]) -> Mapping[str, int]:
    """Return, for every input on the GPU, the bytes that the largest shape of any of `profiles` takes."""
    return {
        name: max(byte_size(info, profile.shapes[name].maximum) for profile in profiles)
        for name, info in signature.inputs.items()
        if not info.is_shape
    }
