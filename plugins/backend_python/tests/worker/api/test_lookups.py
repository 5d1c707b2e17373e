from __future__ import annotations

import numpy as np
import pytest

from tritonpy_worker.api.lookups import (
    get_input_config_by_name,
    get_input_tensor_by_name,
    get_output_config_by_name,
    get_output_tensor_by_name,
    using_decoupled_model_transaction_policy,
)
from tritonpy_worker.api.request import InferenceRequest
from tritonpy_worker.api.response import InferenceResponse
from tritonpy_worker.api.tensor import Tensor

A, B = Tensor("A", np.zeros(1)), Tensor("B", np.zeros(2))


def test_tensors_are_found_by_name():
    request = InferenceRequest(inputs=[A, B], requested_output_names=[], model_name="m")
    assert get_input_tensor_by_name(request, "B") is B
    assert get_input_tensor_by_name(request, "C") is None
    response = InferenceResponse([A, B])
    assert get_output_tensor_by_name(response, "A") is A
    assert get_output_tensor_by_name(response, "C") is None


@pytest.mark.parametrize(
    ("kind", "find"), [("input", get_input_config_by_name), ("output", get_output_config_by_name)]
)
def test_inputs_and_outputs_of_a_configuration_are_found_by_name(kind, find):
    entries = [{"name": "A", "dims": [1]}, {"name": "B", "dims": [2]}]
    assert find({kind: entries}, "B") is entries[1]
    assert find({kind: entries}, "C") is None
    assert find({}, "A") is None


def test_decoupled_configurations():
    assert (
        using_decoupled_model_transaction_policy({"model_transaction_policy": {"decoupled": True}})
        is True
    )
    assert (
        using_decoupled_model_transaction_policy({"model_transaction_policy": {"decoupled": False}})
        is False
    )
    assert using_decoupled_model_transaction_policy({}) is False
