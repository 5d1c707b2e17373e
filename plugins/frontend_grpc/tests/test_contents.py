from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import DTYPES, InvalidArgument, encode_strings
from tritonpy_frontend_grpc.contents import contents_bytes
from tritonpy_protos.grpc_service_pb2 import InferTensorContents

FIELDS = {
    "BOOL": "bool_contents", "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents",
    "INT64": "int64_contents", "UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents",
    "UINT64": "uint64_contents", "FP32": "fp32_contents", "FP64": "fp64_contents",
}  # fmt: skip


@pytest.mark.parametrize("datatype", FIELDS)
@given(data=st.data())
def test_numbers_decode_to_the_bytes_of_their_array(datatype, data):
    dtype = DTYPES[datatype]
    raw = data.draw(st.binary(max_size=8 * dtype.itemsize))
    array = np.frombuffer(raw[: len(raw) // dtype.itemsize * dtype.itemsize], np.uint8).view(dtype)
    if datatype == "BOOL":
        array = array.view(np.uint8) % 2 == 1
    if array.dtype.kind == "f":
        array = np.nan_to_num(array)
    contents = InferTensorContents(**{FIELDS[datatype]: array.tolist()})
    assert contents_bytes(contents, datatype, "X", "m") == array.tobytes()


@given(st.lists(st.binary(max_size=20), max_size=5))
def test_strings_are_encoded_with_length_prefixes(elements):
    contents = InferTensorContents(bytes_contents=elements)
    assert contents_bytes(contents, "BYTES", "X", "m") == encode_strings(elements).tobytes()


def test_small_integers_keep_their_low_bytes():
    assert contents_bytes(InferTensorContents(int_contents=[-1, 300]), "INT8", "X", "m") == b"\xff\x2c"
    assert contents_bytes(InferTensorContents(uint_contents=[257, 2**32 - 1]), "UINT8", "X", "m") == b"\x01\xff"


@pytest.mark.parametrize(("datatype", "found"), [("FP32", "INT32"), ("UINT8", "INT32"), ("<invalid>", "INT32")])
def test_a_mismatched_datatype_has_tritons_error_text(datatype, found):
    with pytest.raises(InvalidArgument) as refusal:
        contents_bytes(InferTensorContents(int_contents=[1]), datatype, "X", "m")
    assert refusal.value.message == (
        f"unexpected explicit tensor data for input tensor 'X' for model 'm' of type '{found}', "
        f"expected datatype '{datatype}'"
    )


def test_a_second_field_has_tritons_error_text():
    contents = InferTensorContents(int_contents=[1], fp32_contents=[1.0])
    with pytest.raises(
        InvalidArgument, match=r"for input tensor 'X' for model 'm', binary data was already supplied.$"
    ):
        contents_bytes(contents, "INT32", "X", "m")
