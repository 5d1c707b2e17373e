"""The functions that other engines call."""

from __future__ import annotations

import pickle

import numpy as np

from tritonpy_batch import make_predict_fn
from tritonpy_batch.adapters import ModelFunction


def copy_of(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own bytes


def test_a_function_can_be_pickled_and_calls_the_model_in_batches(repository):
    function = copy_of(ModelFunction("double", str(repository)))
    values = np.arange(80, dtype=np.float64).reshape(20, 4)
    try:
        outputs = function({"X": values, "other": values})
        assert np.array_equal(outputs["Y"], (2 * values).astype(np.float32))
    finally:
        function.close()


def test_the_function_for_spark_takes_inputs_in_order_and_returns_one_array(repository):
    make = copy_of(make_predict_fn("double", str(repository)))
    call = make()
    values = np.ones((3, 4), np.float32)
    try:
        assert np.array_equal(call(values), 2 * values)
    finally:
        call.close()
