from __future__ import annotations

import numpy as np
import pytest
import torch

from tritonpy import DTYPES, InvalidArgument, Tensor
from tritonpy_backend_torch.pytorch.dtypes import DATATYPE_NAMES, TORCH_DTYPES
from tritonpy_backend_torch.pytorch.tensors import from_strings, from_torch, to_torch

TEXTS = Tensor.from_numpy("t", np.array([b"a", "é".encode(), b""], object))


@pytest.mark.parametrize("datatype", sorted(TORCH_DTYPES))
@pytest.mark.parametrize("writeable", [True, False])
def test_tensors_share_memory_in_both_directions(datatype, writeable):
    array = np.arange(6).reshape(2, 3).astype(DTYPES[datatype])
    array.flags.writeable = writeable
    value = to_torch(Tensor("x", datatype, (2, 3), array))
    assert (DATATYPE_NAMES[value.dtype], tuple(value.shape), value.data_ptr()) == (
        datatype,
        (2, 3),
        array.ctypes.data,
    )
    back = from_torch("y", value)
    assert (back.name, back.datatype, back.shape, back.data.dtype) == (
        "y",
        datatype,
        (2, 3),
        DTYPES[datatype],
    )
    assert back.data.ctypes.data == array.ctypes.data
    assert np.array_equal(back.data, array)


def test_an_empty_tensor_passes():
    value = to_torch(Tensor.from_buffer("x", "FP32", (0, 4), b""))
    assert tuple(value.shape) == (0, 4)
    assert from_torch("y", value).shape == (0, 4)


def test_dlpack_objects_are_used_without_a_copy():
    source = torch.arange(3)
    assert to_torch(Tensor("x", "INT64", (3,), source)).data_ptr() == source.data_ptr()


def test_strided_results_are_copied():
    value = torch.arange(6.0).reshape(2, 3).t()
    assert from_torch("y", value).data.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert from_torch("y", value).data.flags.c_contiguous


def test_texts_are_lists_of_str():
    assert to_torch(TEXTS) == ["a", "é", ""]
    back = from_strings("y", ["a", "é", ""])
    assert (back.datatype, back.shape, back.strings()) == ("BYTES", (3,), TEXTS.strings())
    assert from_strings("y", []).shape == (0,)


def test_bytes_that_are_not_utf8_are_rejected():
    with pytest.raises(
        InvalidArgument, match="input 't' is not UTF-8, the only text encoding that PyTorch accepts"
    ):
        to_torch(Tensor.from_numpy("t", np.array([b"\xff"], object)))
