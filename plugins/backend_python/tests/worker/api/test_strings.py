from __future__ import annotations

import struct

import numpy as np
import pytest

from tritonpy_worker.api.errors import TritonModelException
from tritonpy_worker.api.strings import (
    decode,
    deserialize_bytes_tensor,
    encode,
    serialize_byte_tensor,
)


def objects(*elements):
    array = np.empty(len(elements), object)
    array[:] = elements
    return array


def wire(*elements):
    return b"".join([struct.pack("<I", len(each)) + each for each in elements])


SAME = [b"abc", b"d\0\0", b"\0\0\0"]
DIFFERENT = [b"", b"a", b"\xff" * 300, b"\0", b"tail\0"]


@pytest.mark.parametrize("elements", [SAME, DIFFERENT, [b""] * 3, [b"x"], [b""]])
def test_bytes_survive_a_round_trip(elements):
    encoded = encode(objects(*elements))
    assert encoded.dtype == np.uint8
    assert encoded.tobytes() == wire(*elements)
    decoded = decode(encoded, (len(elements),))
    assert decoded.dtype == object
    assert decoded.tolist() == elements
    assert {type(each) for each in decoded} == {bytes}


@pytest.mark.parametrize("elements", [[b"ab", b"cd", b"ef", b"gh"], [b"a", b"bc", b"", b"def"]])
def test_elements_are_in_row_major_order(elements):
    matrix = objects(*elements).reshape(2, 2)
    assert encode(matrix).tobytes() == wire(*elements)
    assert encode(matrix.T).tobytes() == wire(*[elements[index] for index in (0, 2, 1, 3)])
    assert decode(encode(matrix), (2, 2)).tolist() == matrix.tolist()


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_empty_arrays_of_every_shape(shape):
    assert encode(np.empty(shape, object)).size == 0
    assert decode(np.empty(0, np.uint8), shape).shape == shape


def test_scalars_keep_their_shape():
    scalar = np.empty((), object)
    scalar[()] = b"one"
    assert encode(scalar).tobytes() == wire(b"one")
    decoded = decode(encode(scalar), ())
    assert decoded.shape == ()
    assert decoded.item() == b"one"


def test_other_objects_are_sent_as_text():
    given = objects("é", 5, None, 2.5, b"x", np.bytes_(b"y"), np.str_("z"), bytearray(b"q"))
    expected = ["é".encode(), b"5", b"None", b"2.5", b"x", b"b'y'", b"z", b"bytearray(b'q')"]
    assert encode(given).tobytes() == wire(*expected)


def test_text_is_sent_in_utf8():
    assert encode(objects("a", "ü", "")).tobytes() == wire(b"a", "ü".encode(), b"")


def test_fixed_size_bytes_are_sent_without_padding():
    assert encode(np.array([b"a", b"abc"])).tobytes() == wire(b"a", b"abc")


def test_text_that_utf8_cannot_encode_is_rejected():
    with pytest.raises(UnicodeEncodeError):
        encode(objects("\ud800"))


@pytest.mark.parametrize("size", [1, 3, 8, 10])
def test_a_cut_length_is_malformed(size):
    whole = wire(b"abc", b"defg")  # 7 and 8 bytes
    with pytest.raises(TritonModelException) as caught:
        decode(np.frombuffer(whole[:size], np.uint8), (2,))
    assert str(caught.value) == "Invalid bytes tensor data: incomplete length field"


@pytest.mark.parametrize("size", [5, 6, 12, 14])
def test_a_cut_string_is_malformed(size):
    whole = wire(b"abc", b"defg")
    with pytest.raises(TritonModelException) as caught:
        decode(np.frombuffer(whole[:size], np.uint8), (2,))
    assert str(caught.value) == "Invalid bytes tensor data: string extends beyond buffer"


def test_a_huge_length_is_malformed_and_costs_no_memory():
    with pytest.raises(TritonModelException, match="string extends beyond buffer"):
        decode(np.frombuffer(b"\xff\xff\xff\xff" + b"abc", np.uint8), (1,))


def test_headers_that_only_look_like_a_matrix_are_read_one_by_one():
    elements = [b"a", b"bcd"]  # 12 bytes, as if each were 2 bytes long
    assert decode(encode(objects(*elements)), (2,)).tolist() == elements


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 2), ()])
def test_a_wrong_number_of_elements_is_rejected(shape):
    with pytest.raises(ValueError, match="cannot reshape array of size 2"):
        decode(encode(objects(b"a", b"bcd")), shape)


def test_the_decoded_array_is_writable():
    encoded = encode(objects(b"a", b"b"))
    decoded = decode(encoded, (2,))
    decoded[0] = b"changed"
    assert encoded.tobytes() == wire(b"a", b"b")


def test_the_functions_of_the_api_return_tritons_results():
    assert serialize_byte_tensor(objects(b"a", "é")) == wire(b"a", "é".encode())
    assert serialize_byte_tensor(np.array([b"ab"])) == wire(b"ab")
    assert serialize_byte_tensor(np.empty(0, object)) == ()
    assert serialize_byte_tensor(np.zeros(2)) is None
    for encoded in (
        wire(b"a", b"bc"),
        np.frombuffer(wire(b"a", b"bc"), np.uint8),
        memoryview(wire(b"a", b"bc")),
    ):
        assert deserialize_bytes_tensor(encoded).tolist() == [b"a", b"bc"]
    assert deserialize_bytes_tensor(b"").shape == (0,)
    with pytest.raises(TritonModelException):
        deserialize_bytes_tensor(b"\5\0\0\0a")
