from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_protos.model_config_pb2 import DataType
from tritonpy_types import (
    DATATYPE_OF_NUMBER,
    DATATYPES,
    DTYPES,
    ITEMSIZES,
    datatype_of,
    decode_strings,
    encode_strings,
    string_offsets,
)
from tritonpy_types.errors import InvalidArgument


def test_names_and_numbers_are_those_of_the_model_configuration() -> None:
    for kind in DATATYPES.values():
        assert DataType.Value(kind.config_name) == kind.number
        assert DATATYPE_OF_NUMBER[kind.number] is kind
    assert set(DataType.values()) == {0, *DATATYPE_OF_NUMBER}


def test_every_type_is_found_by_its_dtype() -> None:
    for name, dtype in DTYPES.items():
        assert datatype_of(dtype) == name
        assert ITEMSIZES[name] == (0 if name == "BYTES" else dtype.itemsize)
    assert DTYPES["BF16"] == ml_dtypes.bfloat16


def test_text_and_byte_swapped_dtypes_are_supported() -> None:
    assert datatype_of(np.dtype("U5")) == datatype_of(np.dtype("S5")) == "BYTES"
    assert datatype_of(np.dtype(">i4")) == "INT32"


@pytest.mark.parametrize("dtype", ["complex64", "datetime64[s]", "i4,f4"])
def test_an_unsupported_dtype_raises_key_error(dtype: str) -> None:
    with pytest.raises(KeyError):
        datatype_of(np.dtype(dtype))


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
        (
            b"\x05\x00\x00\x00abc",
            "incomplete string data: an element ends at byte 9, the buffer has 7",
        ),
        (
            b"\xff\xff\xff\xff",
            "incomplete string data: an element ends at byte 4294967299, the buffer has 4",
        ),
    ],
)
def test_a_broken_buffer_is_refused_with_the_position(data: bytes, text: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{text}$"):
        string_offsets(np.frombuffer(data, np.uint8))


def test_other_objects_are_encoded_as_their_text() -> None:
    data = encode_strings([bytearray(b"a"), np.bytes_(b"b"), 3])  # type: ignore[list-item]
    assert decode_strings(data, string_offsets(data)) == [b"a", b"b", b"3"]
