"""Pure computation of the byte sizes of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from tritonpy.frontend import ITEMSIZES
from tritonpy_backend_trt.signature import Profile, Shape, Signature, TensorInfo


def byte_size(info: TensorInfo, shape: Shape) -> int:
    """Return the size in bytes of a tensor of `shape`, as laid out in memory."""
    return prod(info.in_memory(shape)) * ITEMSIZES[info.datatype]


def input_sizes(signature: Signature, profiles: Sequence[Profile]) -> Mapping[str, int]:
    """Return the largest size in bytes of each GPU input under `profiles`."""
    return {
        name: max(byte_size(info, profile.shapes[name].maximum) for profile in profiles)
        for name, info in signature.inputs.items()
        if not info.is_shape
    }
