from __future__ import annotations

import numpy as np
import pytest

from tritonpy import DATATYPES, CallbackSink, InvalidArgument
from tritonpy_http_api.raw_request import decode_raw
from tritonpy_protos.model_config_pb2 import ModelConfig

SINK = CallbackSink(lambda request, response: None)


def config(*dims, datatype="FP32", batch=0, inputs=1):
    result = ModelConfig(name="m", max_batch_size=batch)
    for index in range(inputs):
        given = result.input.add()
        given.name, given.data_type = f"X{index}", DATATYPES[datatype].number
        given.dims.extend(dims)
    return result


def decode(body, model, limit=1000):
    return decode_raw(body, model, "m", -1, SINK, limit).inputs["X0"]


def test_the_variable_dimension_is_inferred():
    body = np.arange(6, dtype=np.float32).tobytes()
    np.testing.assert_array_equal(decode(body, config(2, -1)).numpy(), [[0, 1, 2], [3, 4, 5]])
    assert decode(body, config(-1, 3, batch=4)).shape == (1, 2, 3)
    assert decode(b"", config(-1)).shape == (0,)


def test_a_size_mismatch_is_left_to_validation():
    tensor = decode(b"12345", config(-1))
    assert (tensor.shape, tensor.nbytes) == ((1,), 5)


def test_a_string_input_has_the_body_as_its_only_element():
    tensor = decode(b"hello", config(1, datatype="BYTES", batch=8))
    assert (tensor.shape, tensor.strings()) == ((1, 1), [b"hello"])


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (
            config(1, inputs=2),
            (
                "[request id: <id_unknown>] Raw request must only have 1 input (found 1) to be deduced but got 2 inputs "
                "in 'm' model configuration"
            ),
        ),
        (
            config(-1, -1),
            (
                "[request id: <id_unknown>] The shape of the raw input 'X0' can not be deduced because there are more than "
                "one variable-sized dimension"
            ),
        ),
        (
            config(-1, datatype="BYTES"),
            "[request id: <id_unknown>] For BYTE datatype raw input 'X0', the model must have input shape [1]",
        ),
    ],
)
def test_models_whose_input_cannot_be_deduced_are_refused(model, text):
    with pytest.raises(InvalidArgument) as caught:
        decode(b"abcd", model)
    assert caught.value.message == text


def test_an_oversized_body_is_refused():
    with pytest.raises(
        InvalidArgument, match=r"^Raw input has a byte_size \(8 bytes\) that exceeds the maximum"
    ):
        decode(bytes(8), config(-1), limit=7)
