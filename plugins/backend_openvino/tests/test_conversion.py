from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy_backend_openvino.conversion import input_shapes
from tritonpy_backend_openvino.signature import Signature, TensorInfo
from tritonpy_protos.model_config_pb2 import ModelConfig

FIELD = 'input { name: "A" data_type: TYPE_FP32 dims: [-1, 5] }'


def shapes(dims, text="", fixed_batch=False, reshape_inputs=False):
    config = text_format.Parse('name: "m" ' + text, ModelConfig())
    info = TensorInfo(0, "FP32", dims, frozenset({"A", "A:0"}))
    return input_shapes(config, Signature({"A": info}, {}), fixed_batch, reshape_inputs)


def test_matching_shapes_are_unchanged():
    assert shapes((-1, 3), "max_batch_size: 4") == {}
    assert shapes((2, 3)) == {}
    assert shapes(None, "max_batch_size: 4") == {}


def test_a_batch_dimension_is_dynamic_or_fixed():
    assert shapes((1, 3), "max_batch_size: 4") == {0: (-1, 3)}
    assert shapes((-1, 3), "max_batch_size: 4", fixed_batch=True) == {0: (4, 3)}
    assert shapes((4, 3), "max_batch_size: 4", fixed_batch=True) == {}


@pytest.mark.parametrize("name", ["A", "A:0"])
def test_inputs_are_reshaped_if_enabled(name):
    field = FIELD.replace('"A"', f'"{name}"')
    assert shapes((2, 3), field, reshape_inputs=True) == {0: (-1, 5)}
    assert shapes((1, 2, 3), "max_batch_size: 4 " + field, reshape_inputs=True) == {0: (-1, -1, 5)}
    assert shapes(None, "max_batch_size: 4 " + field, fixed_batch=True, reshape_inputs=True) == {
        0: (4, -1, 5)
    }
    reshaped = field.replace("dims: [-1, 5]", "dims: [10] reshape { shape: [2, 5] }")
    assert shapes((2, 3), reshaped, reshape_inputs=True) == {0: (2, 5)}


def test_a_ragged_input_has_no_batch():
    ragged = 'max_batch_size: 4 input { name: "A" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }'
    assert shapes((-1,), ragged, fixed_batch=True) == {}
