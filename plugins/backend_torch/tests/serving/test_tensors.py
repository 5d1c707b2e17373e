from __future__ import annotations

import numpy as np
import pytest
import torch

from tritonpy import DTYPES, InvalidArgument, Tensor
from tritonpy_backend_torch.serving.dtypes import DATATYPE_NAMES, TORCH_DTYPES
from tritonpy_backend_torch.serving.tensors import borrowed, lent, lent_texts

TEXTS = Tensor.from_numpy("t", np.array([b"a", "é".encode(), b""], object))


@pytest.mark.parametrize("datatype", sorted(TORCH_DTYPES))
@pytest.mark.parametrize("writeable", [True, False])
def test_both_sides_see_the_same_memory(datatype, writeable):
    array = np.arange(6).reshape(2, 3).astype(DTYPES[datatype])
    array.flags.writeable = writeable
    value = borrowed(Tensor("x", datatype, (2, 3), array))
    assert (DATATYPE_NAMES[value.dtype], tuple(value.shape), value.data_ptr()) == (datatype, (2, 3), array.ctypes.data)
    back = lent("y", value)
    assert (back.name, back.datatype, back.shape, back.data.dtype) == ("y", datatype, (2, 3), DTYPES[datatype])
    assert back.data.ctypes.data == array.ctypes.data
    assert np.array_equal(back.data, array)


def test_an_empty_tensor_passes():
    value = borrowed(Tensor.from_buffer("x", "FP32", (0, 4), b""))
    assert tuple(value.shape) == (0, 4)
    assert lent("y", value).shape == (0, 4)


def test_anything_that_speaks_dlpack_is_borrowed():
    source = torch.arange(3)
    assert borrowed(Tensor("x", "INT64", (3,), source)).data_ptr() == source.data_ptr()


def test_what_is_strided_is_copied_on_the_way_out():
    value = torch.arange(6.0).reshape(2, 3).t()
    assert lent("y", value).data.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert lent("y", value).data.flags.c_contiguous


def test_texts_are_lists_of_str():
    assert borrowed(TEXTS) == ["a", "é", ""]
    back = lent_texts("y", ["a", "é", ""])
    assert (back.datatype, back.shape, back.strings()) == ("BYTES", (3,), TEXTS.strings())
    assert lent_texts("y", []).shape == (0,)


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(InvalidArgument, match="input 't' is not UTF-8, which is all that PyTorch takes for text"):
        borrowed(Tensor.from_numpy("t", np.array([b"\xff"], object)))
