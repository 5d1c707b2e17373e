from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.errors import InvalidArgument
from tritonpy.types import decode_strings, encode_strings, string_offsets


@given(st.lists(st.binary(max_size=20), max_size=20))
def test_bytes_are_decoded_unchanged(elements: list[bytes]) -> None:
    data = encode_strings(elements)
    assert decode_strings(data, string_offsets(data)) == elements


@given(st.lists(st.text(max_size=20), max_size=10))
def test_text_is_encoded_as_utf8(elements: list[str]) -> None:
    data = encode_strings(elements)
    assert [each.decode() for each in decode_strings(data, string_offsets(data))] == elements


@given(st.binary(max_size=64))
def test_garbage_is_refused_or_decoded_completely(garbage: bytes) -> None:
    data = np.frombuffer(garbage, np.uint8)
    try:
        offsets = string_offsets(data)
    except InvalidArgument:
        return
    assert encode_strings(decode_strings(data, offsets)).tobytes() == garbage


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x01\x00", "incomplete string length indicator at byte 0 of 2"),
        (b"\x00\x00\x00\x00\x01", "incomplete string length indicator at byte 4 of 5"),
        (b"\x05\x00\x00\x00abc", "incomplete string data: an element ends at byte 9, the buffer has 7"),
        (b"\xff\xff\xff\xff", "incomplete string data: an element ends at byte 4294967299, the buffer has 4"),
    ],
)
def test_a_broken_buffer_is_refused_with_the_position(data: bytes, text: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{text}$"):
        string_offsets(np.frombuffer(data, np.uint8))


def test_other_objects_are_encoded_as_their_text() -> None:
    data = encode_strings([bytearray(b"a"), np.bytes_(b"b"), 3])  # type: ignore[list-item]
    assert decode_strings(data, string_offsets(data)) == [b"a", b"b", b"3"]
