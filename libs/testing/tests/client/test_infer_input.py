from __future__ import annotations

import numpy as np
import pytest

from tritonpy_testing import InferenceServerException, InferInput


def test_a_wrong_type_is_refused():
    with pytest.raises(
        InferenceServerException,
        match="got unexpected datatype FP64 from numpy array, expected FP32",
    ):
        InferInput("IN", [1], "FP32").set_data_from_numpy(np.zeros(1))


def test_a_wrong_shape_is_refused():
    with pytest.raises(
        InferenceServerException, match=r"got unexpected numpy array shape \[2\], expected \[1\]"
    ):
        InferInput("IN", [1], "FP64").set_data_from_numpy(np.zeros(2))


def test_an_input_without_data_is_refused():
    item = InferInput("IN", [1], "FP64")
    with pytest.raises(InferenceServerException, match="input 'IN' has no data"):
        item.tensor()


def test_a_new_shape_needs_new_data():
    item = InferInput("IN", [2], "FP64").set_data_from_numpy(np.zeros(2)).set_shape([1])
    with pytest.raises(InferenceServerException, match="has no data"):
        item.tensor()
    assert item.set_data_from_numpy(np.zeros(1)).tensor().shape == (1,)


def test_the_data_is_a_copy():
    array = np.zeros(1)
    item = InferInput("IN", [1], "FP64").set_data_from_numpy(array)
    array[0] = 1
    assert item.tensor().numpy().tolist() == [0]
