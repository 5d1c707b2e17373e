"""Whether the elements of a BYTES input are as many as its shape says."""

from __future__ import annotations

from math import prod

from tritonpy.errors import InvalidArgument
from tritonpy.ipc import string_walk
from tritonpy.ipc.string_walk import Refusal
from tritonpy.types import CPU, Tensor


def strings_fit(tensor: Tensor) -> bool:
    """Say whether the buffer holds exactly the elements of `shape`. The walk is kept in the tensor and not made again."""
    if tensor.device != CPU:
        return True
    try:
        return len(tensor.offsets()) - 1 == prod(tensor.shape)
    except InvalidArgument:
        return False


def string_refusal(tensor: Tensor, model_name: str) -> Refusal | None:
    """Return what is wrong with the elements of a BYTES input on the CPU, in Triton's words."""
    return string_walk.string_refusal(tensor.data, prod(tensor.shape), tensor.name, model_name)
