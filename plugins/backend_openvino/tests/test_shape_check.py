from __future__ import annotations

import numpy as np
import openvino
import pytest
from openvino import opset13 as ops

from tritonpy import Internal
from tritonpy_backend_openvino.shape_check import ShapeChecker
from tritonpy_backend_openvino.signature import read_signature


@pytest.fixture
def check(models):
    def make(dims, batched=False):
        models.map(
            "FP32", dims, lambda node: ops.reshape(node, np.array([-1, 4]), special_zero=False)
        )
        model = openvino.Core().read_model(models.path)
        return ShapeChecker(openvino, model, read_signature(model), batched), model

    return make


def test_a_model_with_only_a_dynamic_batch_needs_no_check(check):
    assert not check([-1, 4], batched=True)[0].is_needed
    assert not check([2, 4])[0].is_needed
    assert check([-1, 4])[0].is_needed
    assert check([-1, -1], batched=True)[0].is_needed


def test_an_unsupported_shape_is_rejected_each_time(check):
    shapes, _ = check([-1, -1])
    for _ in range(2):
        shapes.check({0: (1, 8)})
        with pytest.raises(Internal, match=r"^openvino error in setting tensor data : "):
            shapes.check({0: (1, 3)})


def test_a_shape_is_checked_once_for_all_batch_sizes(check):
    shapes, model = check([-1, -1], batched=True)
    shapes.check({0: (1, 8)})
    shapes.check({0: (1, 4)})
    checked = model.inputs[0].get_partial_shape()
    shapes.check({0: (1, 8)})
    shapes.check({0: (5, 8)})
    assert model.inputs[0].get_partial_shape() == checked
