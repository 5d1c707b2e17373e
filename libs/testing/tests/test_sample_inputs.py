from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tritonpy import DATATYPES
from tritonpy_testing import model_config, random_inputs
from tritonpy_testing.sample_inputs import random_array


def test_inputs_have_rows_only_where_the_model_batches():
    text = 'input [{ name: "A" data_type: TYPE_FP32 dims: [2, -1] }, { name: "B" data_type: TYPE_STRING dims: 1 }]'
    plain, batched = model_config(text), model_config(f"max_batch_size: 4 {text}")
    assert {name: array.shape for name, array in random_inputs(plain, Random(0)).items()} == {
        "A": (2, 3),
        "B": (1,),
    }
    assert {name: array.shape for name, array in random_inputs(batched, Random(0), 2).items()} == {
        "A": (2, 2, 3),
        "B": (2, 1),
    }


@pytest.mark.parametrize("kind", DATATYPES.values(), ids=lambda kind: kind.name)
def test_arrays_of_every_type_vary_and_repeat_with_the_seed(kind):
    array = random_array(kind, Random(1), (4, 5))
    assert array.dtype == kind.dtype
    assert len(np.unique(array)) > 1
    assert array.tolist() == random_array(kind, Random(1), (4, 5)).tolist()
