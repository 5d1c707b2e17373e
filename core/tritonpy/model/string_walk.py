"""Whether the elements of a BYTES input are as many as its shape says, and Triton's words where they are not."""

from __future__ import annotations

from math import prod
from struct import Struct
from typing import Any, NamedTuple

from tritonpy.errors import InvalidArgument
from tritonpy.types import CPU, Tensor

_LENGTH = Struct("<I")


class Refusal(NamedTuple):
    """Why an input is refused; `with_id` says that Triton's text begins with the request's id."""

    text: str
    with_id: bool = True


def strings_fit(tensor: Tensor) -> bool:
    """Say whether the buffer holds exactly the elements of `shape`. The walk is kept in the tensor and not made again."""
    if tensor.device != CPU:
        return True
    try:
        return len(tensor.offsets()) - 1 == prod(tensor.shape)
    except InvalidArgument:
        return False


def string_refusal(tensor: Tensor, model_name: str) -> Refusal | None:
    """Return what is wrong with the elements of a BYTES input on the CPU, as Triton's own walk finds it."""
    name, count = tensor.name, prod(tensor.shape)
    data: Any = memoryview(tensor.data.tobytes())
    size, at, seen = len(data), 0, 0
    while at < size:
        if size - at < 4:
            return Refusal(
                f"incomplete string length indicator for inference input '{name}' for model '{model_name}', expecting "
                f"4 bytes but only {size - at} bytes available. Please make sure the string length indicator is in one "
                "buffer."
            )
        seen += 1
        if seen > count:
            return Refusal(
                f"unexpected number of string elements {seen} for inference input '{name}' for model '{model_name}', "
                f"expecting {count}"
            )
        length = _LENGTH.unpack_from(data, at)[0]
        at += 4
        if length > size - at:
            return Refusal(
                f"incomplete string data for inference input '{name}', expecting string of length {length} but only "
                f"{size - at} bytes available",
                with_id=False,
            )
        at += length
    if seen != count:
        return Refusal(
            f"expected {count} string elements for inference input '{name}' for model '{model_name}', got {seen}"
        )
    return None
