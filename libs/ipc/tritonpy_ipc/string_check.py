"""Check of the number of elements in a BYTES input, with Triton's error texts."""

from __future__ import annotations

from struct import Struct
from typing import Any, NamedTuple

_LENGTH = Struct("<I")


class InputError(NamedTuple):
    """Why an input is invalid; if `with_id`, Triton's text begins with the request's id."""

    text: str
    with_id: bool = True

    def text_for(self, request_id: str) -> str:
        """Return the text for the client of that request."""
        return (
            f"[request id: {request_id or '<id_unknown>'}] {self.text}"
            if self.with_id
            else self.text
        )


def find_string_error(array: Any, count: int, name: str, model_name: str) -> InputError | None:
    """Return the first error in a BYTES input, or None.

    `array` is the wire form of the input (flat uint8), which should have `count` elements. Triton
    finds errors in the same order.
    """
    data: Any = memoryview(array.tobytes())
    size, at, seen = len(data), 0, 0
    while at < size:
        if size - at < 4:
            return InputError(
                f"incomplete string length indicator for inference input '{name}' for model "
                f"'{model_name}', expecting "
                f"4 bytes but only {size - at} bytes available. Please make sure the string "
                "length indicator is in one "
                "buffer."
            )
        seen += 1
        if seen > count:
            return InputError(
                f"unexpected number of string elements {seen} for inference input '{name}' for "
                f"model '{model_name}', "
                f"expecting {count}"
            )
        length = _LENGTH.unpack_from(data, at)[0]
        at += 4
        if length > size - at:
            return InputError(
                f"incomplete string data for inference input '{name}', expecting string of "
                f"length {length} but only "
                f"{size - at} bytes available",
                with_id=False,
            )
        at += length
    if seen != count:
        return InputError(
            f"expected {count} string elements for inference input '{name}' for model "
            f"'{model_name}', got {seen}"
        )
    return None
