"""Whether the elements of a BYTES input are as many as its shape says, and Triton's words where they are not."""

from __future__ import annotations

from struct import Struct
from typing import Any, NamedTuple

_LENGTH = Struct("<I")


class Refusal(NamedTuple):
    """Why an input is refused; `with_id` says that Triton's text begins with the request's id."""

    text: str
    with_id: bool = True

    def said_to(self, request_id: str) -> str:
        """Return the text for the client of that request."""
        return f"[request id: {request_id or '<id_unknown>'}] {self.text}" if self.with_id else self.text


def string_refusal(array: Any, count: int, name: str, model_name: str) -> Refusal | None:
    """Return what is wrong with the `count` elements of the BYTES input `name`, whose wire form is `array` (flat uint8), as Triton's own walk finds it."""
    data: Any = memoryview(array.tobytes())
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
