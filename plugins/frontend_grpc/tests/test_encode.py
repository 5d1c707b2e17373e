from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from tritonclient.grpc import InferResult, service_pb2

from tritonpy import DTYPES, InferResponse, Internal, Tensor
from tritonpy.config import datatype_of
from tritonpy.frontend import RegionSlice
from tritonpy_frontend_grpc import encode
from tritonpy_ipc import BlockRow, Column, Stack, TensorSignature
from tritonpy_protos.grpc_service_pb2 import (
    InferParameter,
    ModelInferResponse,
    ModelStreamInferResponse,
)

dtypes = [dtype for name, dtype in DTYPES.items() if name not in ("BYTES", "BF16")]
arrays = st.sampled_from(dtypes).flatmap(
    lambda dtype: st_numpy.arrays(
        dtype, st_numpy.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=20)
    )
)
parameters = st.dictionaries(
    st.text(),
    st.one_of(
        st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text()
    ),
)


@st.composite
def responses(draw):
    tensors = [
        Tensor.from_numpy(f"Y{at}", array)
        for at, array in enumerate(draw(st.lists(arrays, max_size=3)))
    ]
    return InferResponse(
        tensors,
        draw(st.text()),
        draw(st.integers(1, 2**62)),
        draw(st.text()),
        draw(parameters),
        final=draw(st.booleans()),
    )


def expected(response):
    message = ModelInferResponse(
        model_name=response.model_name, model_version=str(response.model_version), id=response.id
    )
    for tensor in response.outputs:
        message.outputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
        message.raw_output_contents.append(tensor.data.tobytes())
    choices = {bool: "bool_param", int: "int64_param", float: "double_param", str: "string_param"}
    for key, value in response.parameters.items():
        message.parameters[key].CopyFrom(InferParameter(**{choices[type(value)]: value}))
    return message


@given(responses())
def test_the_encoded_bytes_equal_the_protobuf_message(response):
    assert ModelInferResponse.FromString(encode.encode_response(response)) == expected(response)


def test_an_output_in_shared_memory_is_described_and_has_an_empty_entry():
    outputs = [
        Tensor("R", "INT32", (1, 2), RegionSlice("r", 0, 8)),
        Tensor.from_numpy("N", np.array([1], np.int8)),
    ]
    message = ModelInferResponse.FromString(encode.encode_response(InferResponse(outputs, "m", 1)))
    assert [(output.name, output.datatype, list(output.shape)) for output in message.outputs] == [
        ("R", "INT32", [1, 2]),
        ("N", "INT8", [1]),
    ]
    assert list(message.raw_output_contents) == [b"", b"\x01"]
    streamed = ModelStreamInferResponse.FromString(
        encode.encode_stream_response(InferResponse(outputs[:1], "m", 1))
    )
    assert list(streamed.infer_response.raw_output_contents) == [b""]


@given(responses())
def test_stream_messages_have_the_final_flag(response):
    inner = expected(response)
    inner.parameters["triton_final_response"].bool_param = response.final
    found = ModelStreamInferResponse.FromString(encode.encode_stream_response(response))
    assert found == ModelStreamInferResponse(infer_response=inner)


@given(arrays)
def test_the_client_reads_what_is_written(array):
    raw = encode.encode_response(InferResponse([Tensor.from_numpy("Y", array)], "m", 1))
    result = InferResult(service_pb2.ModelInferResponse.FromString(raw))
    if array.size:
        np.testing.assert_array_equal(result.as_numpy("Y"), array)
    assert result.get_output("Y").shape == list(array.shape)


def test_strings_and_bfloat16_are_encoded_unchanged():
    strings = Tensor.from_numpy("S", np.array([b"ab", b""], np.object_))
    halves = Tensor.from_numpy("H", np.array([1, 2], ml_dtypes.bfloat16))
    found = ModelInferResponse.FromString(
        encode.encode_response(InferResponse([strings, halves], "m", 1))
    )
    assert list(found.raw_output_contents) == [b"\2\0\0\0ab\0\0\0\0", halves.data.tobytes()]
    assert [output.datatype for output in found.outputs] == ["BYTES", "BF16"]


def test_data_on_a_device_is_copied_to_the_host():
    class OnDevice:
        array = np.arange(3, dtype=np.float32)

        def __dlpack__(self, **_how):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    tensor = Tensor("Y", "FP32", (3,), OnDevice(), (2, 0))
    found = ModelInferResponse.FromString(encode.encode_response(InferResponse([tensor], "m", 1)))
    assert found.raw_output_contents[0] == OnDevice.array.tobytes()


def test_a_parameter_beyond_64_bits_is_named():
    with pytest.raises(Internal, match="parameter 'big' is 18446744073709551616"):
        encode.encode_response(InferResponse([], "m", 1, parameters={"big": 2**64}))


def test_a_refusal_has_the_request_id():
    found = ModelStreamInferResponse.FromString(encode.encode_refusal("no", "7"))
    assert found == ModelStreamInferResponse(
        error_message="no", infer_response=ModelInferResponse(id="7")
    )


@pytest.mark.parametrize("final", [True, False])
def test_a_failure_has_model_version_and_final_flag(final):
    found = ModelStreamInferResponse.FromString(encode.encode_failure("no", final, "7", "m", ""))
    flag = {"triton_final_response": InferParameter(bool_param=final)}
    inner = ModelInferResponse(id="7", model_name="m", parameters=flag)
    assert found == ModelStreamInferResponse(error_message="no", infer_response=inner)


def test_an_empty_final_response_has_no_outputs():
    found = ModelStreamInferResponse.FromString(
        encode.encode_empty_final("7", "m", "2")
    ).infer_response
    assert (found.id, found.model_name, found.model_version, len(found.outputs)) == (
        "7",
        "m",
        "2",
        0,
    )
    assert found.parameters["triton_final_response"].bool_param


@pytest.mark.parametrize("encode_function", [encode.encode_response, encode.encode_stream_response])
def test_a_response_beyond_the_protobuf_limit_is_an_error(encode_function, monkeypatch):
    response = InferResponse([Tensor.from_numpy("Y", np.zeros(1000, np.uint8))], "m", 1)
    size = len(encode_function(response))
    monkeypatch.setattr(encode, "_MAX_MESSAGE_BYTES", size)
    assert encode_function(response)
    monkeypatch.setattr(encode, "_MAX_MESSAGE_BYTES", size - 1)
    with pytest.raises(
        Internal, match=f"the response has {size} bytes, and gRPC carries {size - 1} at the most"
    ):
        encode_function(response)


@given(
    st.lists(arrays.filter(lambda array: array.ndim > 0), min_size=1, max_size=3),
    st.text(),
    st.booleans(),
)
def test_rows_of_a_block_are_encoded_like_their_tensors(columns, request_id, final):
    whole = [np.concatenate([array, array]) for array in columns]
    datatypes = [datatype_of(array.dtype) for array in columns]
    described = [
        Column(f"Y{at}", datatype, array.shape, array.dtype)
        for at, (datatype, array) in enumerate(zip(datatypes, columns, strict=True))
    ]
    stack = Stack(TensorSignature(described, None), 2, whole, Tensor)
    for place in range(2):
        row = BlockRow(stack, place)
        lazy = InferResponse(row, "m", 3, request_id, {"p": 1}, final=final)
        plain = InferResponse(row.tensors(), "m", 3, request_id, {"p": 1}, final=final)
        assert ModelInferResponse.FromString(encode.encode_response(lazy)) == expected(plain)
        streamed = ModelStreamInferResponse.FromString(encode.encode_stream_response(lazy))
        assert streamed == ModelStreamInferResponse.FromString(encode.encode_stream_response(plain))
