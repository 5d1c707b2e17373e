from __future__ import annotations

import numpy as np
import pytest
from google.protobuf import text_format

from tritonpy_batching.batch_keys import batch_key
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_types import CallbackSink, InferRequest, Tensor


@pytest.fixture
def config():
    """Return a function that parses a text into a ModelConfig."""
    return lambda text: text_format.Parse(text, ModelConfig())


@pytest.fixture
def request_of():
    """Return a function that creates a request with one input."""

    def make(rows=1, shape=(4,)):
        inputs = {"IN": Tensor("IN", "FP32", (rows, *shape), np.zeros((rows, *shape), np.float32))}
        return InferRequest("m", inputs, CallbackSink(lambda *_: None), batch_size=rows)

    return make


def test_fixed_shapes_need_no_key(config):
    assert batch_key(config('input { name: "IN" dims: [2, 4] }')) is None


def test_ragged_inputs_need_no_key(config):
    assert batch_key(config('input { name: "IN" dims: -1 allow_ragged_batch: true }')) is None


def test_a_variable_input_separates_by_shape_but_not_by_rows(config, request_of):
    key_of = batch_key(config('input { name: "IN" dims: -1 }'))
    assert key_of(request_of(rows=1)) == key_of(request_of(rows=3))
    assert key_of(request_of(shape=(4,))) != key_of(request_of(shape=(5,)))


def test_optional_inputs_separate_by_presence(config, request_of):
    key_of = batch_key(
        config('input { name: "IN" dims: 4 } input { name: "MASK" dims: 4 optional: true }')
    )
    with_mask = request_of()
    with_mask.inputs["MASK"] = with_mask.inputs["IN"]
    assert key_of(request_of()) == key_of(request_of())
    assert key_of(request_of()) != key_of(with_mask)


def test_an_optional_variable_input_separates_by_presence_and_shape(config, request_of):
    key_of = batch_key(
        config(
            'input { name: "IN" dims: -1 optional: true } input { name: "X" dims: -1 optional: true }'
        )
    )
    absent = request_of()
    absent.inputs.clear()
    assert key_of(absent) != key_of(request_of())
    assert key_of(request_of(shape=(4,))) != key_of(request_of(shape=(5,)))


def test_shape_tensors_separate_by_value(config, request_of):
    key_of = batch_key(config('input { name: "SHAPE" dims: 2 is_shape_tensor: true }'))

    def request(*values):
        request_ = request_of()
        request_.inputs["SHAPE"] = Tensor.from_numpy("SHAPE", np.array(values, np.int32))
        return request_

    assert key_of(request(2, 0)) == key_of(request(2, 0))
    assert key_of(request(2, 0)) != key_of(request(2, 1))
    assert key_of(request_of()) == key_of(request_of())


def test_shape_tensors_on_a_device_equal_nothing(config, request_of):
    key_of = batch_key(config('input { name: "SHAPE" dims: 2 is_shape_tensor: true }'))
    request = request_of()
    request.inputs["SHAPE"] = Tensor("SHAPE", "INT32", (2,), object(), device=(2, 0))
    assert key_of(request) != key_of(request)
