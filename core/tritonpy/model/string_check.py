"""The check that a BYTES input has as many elements as its shape says."""

from __future__ import annotations

from math import prod

from tritonpy_ipc import string_check
from tritonpy_ipc.string_check import InputError
from tritonpy_types import CPU, Tensor
from tritonpy_types.errors import InvalidArgument


def has_matching_strings(tensor: Tensor) -> bool:
    """Return whether the buffer holds exactly the elements of `shape`.

    The offsets of the elements are kept in the tensor, so the buffer is traversed once.
    """
    if tensor.device != CPU:
        return True
    try:
        return len(tensor.offsets()) - 1 == prod(tensor.shape)
    except InvalidArgument:
        return False


def find_string_error(tensor: Tensor, model_name: str) -> InputError | None:
    """Return what is wrong with the elements of a BYTES input on the CPU, in Triton's words."""
    return string_check.find_string_error(tensor.data, prod(tensor.shape), tensor.name, model_name)
