from __future__ import annotations

import numpy as np
import openvino
import pytest
from openvino import opset13 as ops

from tritonpy import Internal
from tritonpy_backend_openvino.shape_check import ShapeCheck
from tritonpy_backend_openvino.signature import signature_of


@pytest.fixture
def check(models):
    def make(dims, batched=False):
        models.map("FP32", dims, lambda node: ops.reshape(node, np.array([-1, 4]), special_zero=False))
        model = openvino.Core().read_model(models.path)
        return ShapeCheck(openvino, model, signature_of(model), batched), model

    return make


def test_a_model_that_leaves_nothing_but_the_batch_open_needs_none(check):
    assert not check([-1, 4], batched=True)[0].needed
    assert not check([2, 4])[0].needed
    assert check([-1, 4])[0].needed
    assert check([-1, -1], batched=True)[0].needed


def test_a_shape_that_an_operator_cannot_take_is_refused_each_time(check):
    shapes, _ = check([-1, -1])
    for _ in range(2):
        shapes.check({0: (1, 8)})
        with pytest.raises(Internal, match=r"^openvino error in setting tensor data : "):
            shapes.check({0: (1, 3)})


def test_a_shape_is_asked_once_and_the_batch_is_no_part_of_it(check):
    shapes, model = check([-1, -1], batched=True)
    shapes.check({0: (1, 8)})
    shapes.check({0: (1, 4)})
    asked = model.inputs[0].get_partial_shape()
    shapes.check({0: (1, 8)})
    shapes.check({0: (5, 8)})
    assert model.inputs[0].get_partial_shape() == asked
