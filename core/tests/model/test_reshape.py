from __future__ import annotations

import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.model.reshape import Reshape, reshaped
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_types import Tensor, encode_strings
from tritonpy_types.errors import Internal

TENSOR = '{ name: "x" data_type: TYPE_INT32 dims: [-1, 3] reshape { shape: [1, -1, 3] } }'


def config(size=4, tensor=TENSOR):
    text = (
        f'max_batch_size: {size} input {tensor} output {tensor} output {{ name: "plain" dims: 3 }}'
    )
    return text_format.Parse(text, ModelConfig())


def array(*shape):
    return Tensor.from_numpy("x", np.arange(np.prod(shape), dtype=np.int32).reshape(shape))


def test_inputs_get_the_shape_of_the_model_and_outputs_that_of_the_client():
    (inner,) = Reshape.of_inputs(config()).apply([array(2, 5, 3)])
    assert inner.shape == inner.data.shape == (2, 1, 5, 3)
    (outer,) = Reshape.of_outputs(config()).apply([inner])
    assert outer.shape == outer.data.shape == (2, 5, 3)


def test_no_data_is_copied():
    tensor = array(2, 5, 3)
    (inner,) = Reshape.of_inputs(config()).apply([tensor])
    assert np.shares_memory(inner.data, tensor.data)


def test_without_batches_every_dimension_is_mapped():
    (inner,) = Reshape.of_inputs(config(size=0)).apply([array(5, 3)])
    assert inner.shape == (1, 5, 3)


def test_an_empty_reshape_leaves_only_the_batch_dimension():
    scalar = config(tensor='{ name: "x" data_type: TYPE_INT32 dims: 1 reshape {} }')
    (inner,) = Reshape.of_inputs(scalar).apply([array(4, 1)])
    assert inner.data.shape == (4,)
    (outer,) = Reshape.of_outputs(scalar).apply([inner])
    assert outer.data.shape == (4, 1)


def test_text_stays_in_wire_form():
    tensor = Tensor("x", "BYTES", (1, 2, 3), encode_strings("abcdef"))
    (inner,) = Reshape.of_inputs(config()).apply([tensor])
    assert inner.shape == (1, 1, 2, 3)
    assert inner.strings() == tensor.strings()


def test_a_tensor_without_reshape_passes_as_it_is():
    tensor = Tensor.from_numpy("plain", np.zeros((1, 3), np.int32))
    assert Reshape.of_outputs(config()).apply([tensor])[0] is tensor


def test_a_configuration_without_reshape_has_nothing_to_map():
    assert not Reshape.of_inputs(ModelConfig())
    assert Reshape.of_inputs(config())


@pytest.mark.parametrize("shape", [(2, 5, 3), (2, 1, 5, 4), (2, 2, 5, 3)])
def test_an_output_of_another_shape_than_promised_fails_the_model(shape):
    with pytest.raises(
        Internal,
        match=r"tensor 'x' has shape .*, the configuration's reshape expects \[-1,1,-1,3\]",
    ):
        Reshape.of_outputs(config()).apply([array(*shape)])


@given(st.lists(st.integers(0, 9), max_size=5), st.data())
def test_mapping_there_and_back_gives_the_same_shape(sizes, data):
    before = tuple(data.draw(st.sampled_from([size, -1])) for size in sizes)
    after = []
    for dim in before:
        after.extend([1] * data.draw(st.integers(0, 2)))
        after.append(dim)
    there = reshaped(tuple(sizes), before, tuple(after))
    assert np.prod(there) == np.prod(sizes)
    assert reshaped(there, tuple(after), before) == tuple(sizes)


def test_a_shape_tensor_has_no_batch_dimension_before_those_that_are_mapped():
    tensor = '{ name: "x" data_type: TYPE_INT32 dims: [2, 1] is_shape_tensor: true reshape { shape: 2 } }'
    (inner,) = Reshape.of_inputs(config(tensor=tensor)).apply([array(2, 1)])
    assert inner.data.shape == (2,)
    (outer,) = Reshape.of_outputs(config(tensor=tensor)).apply([inner])
    assert outer.data.shape == (2, 1)


def test_where_the_other_side_is_fixed_any_shape_of_as_many_elements_will_do():
    fixed = config(tensor='{ name: "x" data_type: TYPE_INT32 dims: 2 reshape { shape: [2, 1] } }')
    for inner in (array(3, 2, 1), array(3, 2), array(3, 1, 2, 1)):
        (outer,) = Reshape.of_outputs(fixed).apply([inner])
        assert outer.data.shape == (3, 2)


@pytest.mark.parametrize("shape", [(3, 5), (3, 2, 2), (3,)])
def test_another_number_of_elements_is_an_error(shape):
    fixed = '{ name: "x" data_type: TYPE_%s dims: 2 reshape { shape: [2, 1] } }'
    text = Tensor("x", "BYTES", shape, encode_strings("a" * int(np.prod(shape))))
    for tensor, datatype in ((array(*shape), "INT32"), (text, "STRING")):
        with pytest.raises(Internal, match=r"the configuration's reshape expects \[-1,2,1\]"):
            Reshape.of_outputs(config(tensor=fixed % datatype)).apply([tensor])
