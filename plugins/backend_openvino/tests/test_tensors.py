from __future__ import annotations

import numpy as np
import openvino
import pytest

from tritonpy import DTYPES, Tensor
from tritonpy_backend_openvino.signature import ELEMENTS_OF_DATATYPES
from tritonpy_backend_openvino.tensors import string_tensor, to_array, to_openvino


def element(datatype):
    return getattr(openvino.Type, ELEMENTS_OF_DATATYPES[datatype])


@pytest.mark.parametrize("writable", [True, False])
@pytest.mark.parametrize("datatype", [name for name in DTYPES if name != "BYTES"])
def test_numeric_tensors_share_memory(datatype, writable):
    given = np.arange(6).astype(DTYPES[datatype]).reshape(2, 3)
    given.flags.writeable = writable
    tensor = to_openvino(openvino, given, element(datatype))
    assert tuple(tensor.shape) == (2, 3)
    assert tensor.element_type == element(datatype)
    assert tensor.data.ctypes.data == given.ctypes.data
    found = to_array(tensor, datatype)
    assert (found.dtype, found.tolist()) == (given.dtype, given.tolist())
    assert found.ctypes.data == given.ctypes.data
    assert given.flags.writeable == writable


def test_a_result_array_keeps_its_tensor_alive():
    found = to_array(openvino.Tensor(np.arange(1 << 16)), "INT64")
    others = [openvino.Tensor(np.zeros(1 << 16, np.int64)) for _ in range(8)]
    assert found.sum() == sum(range(1 << 16))
    assert len(others) == 8


@pytest.mark.parametrize("shape", [(2, 2), (4,), (4, 1, 1)])
def test_strings_make_a_round_trip(shape):
    words = [b"", "é".encode(), b"\xff\xfe", b"a\0b"]
    tensor = string_tensor(
        openvino, Tensor.from_numpy("IN", np.array(words, object).reshape(shape)), shape
    )
    assert to_array(tensor, "BYTES").ravel().tolist() == words
    assert to_array(tensor, "BYTES").shape == shape


@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_empty_string_tensors_are_supported(shape):
    tensor = string_tensor(openvino, Tensor.from_numpy("IN", np.empty(shape, object)), shape)
    assert to_array(tensor, "BYTES").shape == shape


def test_zero_bytes_at_the_end_of_a_string_are_lost():
    tensor = string_tensor(openvino, Tensor.from_numpy("IN", np.array([b"a\0"], object)), (1,))
    assert to_array(tensor, "BYTES").tolist() == [b"a"]
