from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
import tritonclient.grpc as client
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from tritonclient.grpc._utils import _get_inference_request

from tritonpy import (
    DTYPES,
    CallbackSink,
    InvalidArgument,
    OutputSpec,
    SequenceInfo,
    TritonError,
    encode_strings,
)
from tritonpy.config import datatype_of
from tritonpy.frontend import RegionSlice
from tritonpy_frontend_grpc.decode import contents_bytes, decode_request, parse_region
from tritonpy_frontend_grpc.service import parse_message
from tritonpy_protos.grpc_service_pb2 import InferParameter, InferTensorContents, ModelInferRequest

SINK = CallbackSink(print)
Input = ModelInferRequest.InferInputTensor
Output = ModelInferRequest.InferRequestedOutputTensor
REGION = {
    "shared_memory_region": InferParameter(string_param="r"),
    "shared_memory_byte_size": InferParameter(int64_param=4),
}
dtypes = [dtype for name, dtype in DTYPES.items() if name not in ("BYTES", "BF16")]
arrays = st.sampled_from(dtypes).flatmap(
    lambda dtype: st_numpy.arrays(
        dtype, st_numpy.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)
    )
)
CONTENTS = InferTensorContents(int_contents=[1])
FIELDS = {
    "BOOL": "bool_contents", "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents",
    "INT64": "int64_contents", "UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents",
    "UINT64": "uint64_contents", "FP32": "fp32_contents", "FP64": "fp64_contents",
}  # fmt: skip
NAME = InferParameter(string_param="r")
NUMBER = InferParameter(int64_param=8)


def decode(**fields):
    return decode_request(ModelInferRequest(model_name="m", **fields), SINK)


def from_client(inputs, outputs=None, **given):
    arguments = {
        "model_name": "m", "model_version": "", "request_id": "", "sequence_id": 0, "sequence_start": False,
        "sequence_end": False, "priority": 0, "timeout": None, "parameters": None,
    }  # fmt: skip
    built = _get_inference_request(inputs=inputs, outputs=outputs, **(arguments | given))
    return decode_request(ModelInferRequest.FromString(built.SerializeToString()), SINK)


@settings(max_examples=50)
@given(st.lists(arrays, min_size=1, max_size=3))
def test_requests_of_tritonclient_are_decoded(given_arrays):
    inputs = [
        client.InferInput(
            f"X{at}", list(array.shape), datatype_of(array.dtype)
        ).set_data_from_numpy(array)
        for at, array in enumerate(given_arrays)
    ]
    request = from_client(inputs)
    assert list(request.inputs) == [f"X{at}" for at in range(len(given_arrays))]
    for array, tensor in zip(given_arrays, request.inputs.values(), strict=True):
        assert tensor.shape == array.shape
        assert tensor.datatype == datatype_of(array.dtype)
        assert tensor.data.tobytes() == array.tobytes()


@given(st.lists(st.binary(max_size=10), min_size=1, max_size=4))
def test_strings_of_tritonclient_are_decoded(elements):
    array = np.empty(len(elements), np.object_)
    array[:] = elements
    request = from_client(
        [client.InferInput("X", [len(elements)], "BYTES").set_data_from_numpy(array)]
    )
    assert request.inputs["X"].strings() == elements


def test_all_fields_of_a_request_are_decoded():
    tensor = client.InferInput("X", [1], "INT8").set_data_from_numpy(np.zeros(1, np.int8))
    outputs = [client.InferRequestedOutput("A"), client.InferRequestedOutput("B", class_count=3)]
    request = from_client(
        [tensor], outputs, model_version="3", request_id="abc", sequence_id=9, sequence_end=True, priority=2,
        timeout=77, parameters={"mine": 1.5},
    )  # fmt: skip
    assert (request.model_name, request.model_version, request.id) == ("m", 3, "abc")
    assert request.outputs == {"A": OutputSpec("A"), "B": OutputSpec("B", classification=3)}
    assert request.classifies
    assert request.sequence == SequenceInfo(9, end=True)
    assert (request.priority, request.timeout_us, request.parameters) == (2, 77, {"mine": 1.5})
    assert request.received_ns > 0
    assert not request.accepts_decoupled


def test_no_outputs_means_all_of_them():
    assert decode().outputs is None
    assert not decode().classifies


def test_a_tensor_is_a_view_on_the_message():
    request = decode(
        inputs=[Input(name="X", datatype="INT32", shape=[1])], raw_input_contents=[b"1234"]
    )
    assert not request.inputs["X"].data.flags.owndata


def test_typed_contents_are_decoded():
    contents = InferTensorContents(fp32_contents=[1.5, 2.5])
    request = decode(inputs=[Input(name="X", datatype="FP32", shape=[2], contents=contents)])
    assert request.inputs["X"].data.tolist() == [1.5, 2.5]


def test_empty_typed_contents_are_no_elements():
    request = decode(
        inputs=[Input(name="X", datatype="FP32", shape=[0], contents=InferTensorContents())]
    )
    assert request.inputs["X"].data.shape == (0,)


@pytest.mark.parametrize(
    "shape", [[3], [-1], [-1, -1], [-2, -1], [2**62, 2**62], [0, 2**62, 2**62]]
)
def test_a_shape_that_does_not_fit_is_left_to_validation(shape):
    raw = b"12345678" if 0 not in shape else b""
    tensor = decode(
        inputs=[Input(name="X", datatype="INT32", shape=shape)], raw_input_contents=[raw]
    ).inputs["X"]
    assert tensor.shape == tuple(shape)
    assert tensor.data.dtype == np.uint8


def test_an_unknown_data_type_is_left_to_validation():
    tensor = decode(
        inputs=[Input(name="X", datatype="FP31", shape=[1])], raw_input_contents=[b"12"]
    ).inputs["X"]
    assert (tensor.datatype, tensor.nbytes) == ("<invalid>", 2)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"inputs": [Input(name="X")]}, "unable to find data for input tensor 'X' for model 'm' in request."),
        ({"inputs": [Input(name="X", datatype="INT8"), Input(name="Y")], "raw_input_contents": [b""]},
         "unable to find data for input tensor 'Y' for model 'm' in request."),
        ({"inputs": [Input(name="X", contents=CONTENTS)], "raw_input_contents": [b"1"]},
         "contents field must not be specified when using raw_input_contents for 'X' for model 'm'"),
        ({"inputs": [Input(name="X", parameters=REGION, contents=CONTENTS)]},
         "unexpected 'content' provided when using shared memory for input tensor 'X' for model 'm'"),
        ({"id": "7", "inputs": [Input(name="X", datatype="INT8")] * 2, "raw_input_contents": [b"", b""]},
         "[request id: 7] input 'X' already exists in request"),
        ({"outputs": [Output(name="A")] * 2}, "[request id: <id_unknown>] output 'A' already exists in request"),
        ({"outputs": [Output(name="A", parameters={"classification": InferParameter(string_param="1")})]},
         "invalid value type for 'classification' parameter, expected int64_param"),
        ({"outputs": [Output(name="A", parameters={"classification": InferParameter(int64_param=0)})]},
         "invalid value for 'classification' parameter, expected >= 0"),
        ({"outputs": [Output(name="A", parameters={"classification": InferParameter(int64_param=1), **REGION})]},
         "output can't set both 'shared_memory_region' and 'classification'"),
    ],
)  # fmt: skip
def test_inconsistent_requests_have_tritons_error_texts(fields, text):
    with pytest.raises(InvalidArgument) as refusal:
        decode(**fields)
    assert refusal.value.message == text


def test_an_input_in_shared_memory_is_left_to_the_engine_and_has_no_raw_contents():
    near = Input(name="X", datatype="INT8", shape=[2])
    request = decode(
        inputs=[Input(name="R", datatype="INT32", shape=[1], parameters=REGION), near],
        raw_input_contents=[b"ab"],
    )
    assert request.uses_regions
    assert (request.inputs["R"].datatype, request.inputs["R"].shape) == ("INT32", (1,))
    assert request.inputs["R"].data == RegionSlice("r", 0, 4)
    assert request.inputs["X"].numpy().tolist() == [97, 98]
    assert not decode(
        inputs=[near], raw_input_contents=[b"ab"], outputs=[Output(name="A")]
    ).uses_regions


def test_an_unknown_datatype_in_shared_memory_is_left_to_validation():
    request = decode(inputs=[Input(name="R", datatype="INT33", parameters=REGION)])
    assert (request.inputs["R"].datatype, request.inputs["R"].data) == (
        "<invalid>",
        RegionSlice("r", 0, 4),
    )


def test_an_output_may_go_to_shared_memory():
    request = decode(outputs=[Output(name="A", parameters=REGION), Output(name="B")])
    assert request.uses_regions
    assert request.outputs == {"A": OutputSpec("A", region="r", byte_size=4), "B": OutputSpec("B")}


@given(st.binary(max_size=200))
def test_arbitrary_bytes_decode_or_raise_an_error(raw):
    with suppress(TritonError):
        assert decode_request(parse_message(ModelInferRequest, raw), SINK).inputs is not None


@pytest.mark.parametrize("raws", [[b"abcd", b"abcd"], [b"abcd", b""], [b"abcd"] * 3])
def test_more_raw_contents_than_inputs_are_refused(raws):
    with pytest.raises(InvalidArgument, match=rf"has {len(raws)} raw_input_contents for 1 inputs"):
        decode(inputs=[Input(name="X", datatype="FP32", shape=[1])], raw_input_contents=raws)


def test_raw_contents_in_addition_to_shared_memory_are_refused():
    with pytest.raises(
        InvalidArgument, match="has 1 raw_input_contents for 0 inputs without shared memory"
    ):
        decode(
            inputs=[Input(name="X", datatype="FP32", shape=[1], parameters=REGION)],
            raw_input_contents=[b"abcd"],
        )


@pytest.mark.parametrize("datatype", FIELDS)
@given(data=st.data())
def test_numbers_decode_to_the_bytes_of_their_array(datatype, data):
    dtype = DTYPES[datatype]
    raw = data.draw(st.binary(max_size=8 * dtype.itemsize))
    array = np.frombuffer(raw[: len(raw) // dtype.itemsize * dtype.itemsize], np.uint8).view(dtype)
    if datatype == "BOOL":
        array = array.view(np.uint8) % 2 == 1
    if array.dtype.kind == "f":
        array = np.nan_to_num(array)
    contents = InferTensorContents(**{FIELDS[datatype]: array.tolist()})
    assert contents_bytes(contents, datatype, "X", "m") == array.tobytes()


@given(st.lists(st.binary(max_size=20), max_size=5))
def test_strings_are_encoded_with_length_prefixes(elements):
    contents = InferTensorContents(bytes_contents=elements)
    assert contents_bytes(contents, "BYTES", "X", "m") == encode_strings(elements).tobytes()


def test_small_integers_keep_their_low_bytes():
    assert (
        contents_bytes(InferTensorContents(int_contents=[-1, 300]), "INT8", "X", "m") == b"\xff\x2c"
    )
    assert (
        contents_bytes(InferTensorContents(uint_contents=[257, 2**32 - 1]), "UINT8", "X", "m")
        == b"\x01\xff"
    )


@pytest.mark.parametrize(
    ("datatype", "found"), [("FP32", "INT32"), ("UINT8", "INT32"), ("<invalid>", "INT32")]
)
def test_a_mismatched_datatype_has_tritons_error_text(datatype, found):
    with pytest.raises(InvalidArgument) as refusal:
        contents_bytes(InferTensorContents(int_contents=[1]), datatype, "X", "m")
    assert refusal.value.message == (
        f"unexpected explicit tensor data for input tensor 'X' for model 'm' of type '{found}', "
        f"expected datatype '{datatype}'"
    )


def test_a_second_field_has_tritons_error_text():
    contents = InferTensorContents(int_contents=[1], fp32_contents=[1.0])
    with pytest.raises(
        InvalidArgument,
        match=r"for input tensor 'X' for model 'm', binary data was already supplied.$",
    ):
        contents_bytes(contents, "INT32", "X", "m")


def test_a_region_needs_a_name_and_a_size():
    assert parse_region({}, "X") is None
    assert parse_region(
        {"shared_memory_region": NAME, "shared_memory_byte_size": NUMBER}, "X"
    ) == RegionSlice("r", 0, 8)


def test_an_offset_is_optional():
    given = {
        "shared_memory_region": NAME,
        "shared_memory_byte_size": NUMBER,
        "shared_memory_offset": NUMBER,
    }
    assert parse_region(given, "X") == RegionSlice("r", 8, 8)


def test_negative_values_are_interpreted_as_unsigned():
    negative = InferParameter(int64_param=-1)
    given = {
        "shared_memory_region": NAME,
        "shared_memory_byte_size": negative,
        "shared_memory_offset": negative,
    }
    assert parse_region(given, "X") == RegionSlice("r", 2**64 - 1, 2**64 - 1)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"shared_memory_region": NUMBER}, "invalid value type for 'shared_memory_region' parameter for tensor 'X', expected string_param."),
        ({"shared_memory_region": NAME}, "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor 'X'"),
        ({"shared_memory_region": NAME, "shared_memory_byte_size": NAME}, "invalid value type for 'shared_memory_byte_size' parameter for tensor 'X', expected int64_param."),
        ({"shared_memory_region": NAME, "shared_memory_offset": NAME}, "invalid value type for 'shared_memory_offset' parameter for tensor 'X', expected int64_param."),
        ({"shared_memory_offset": NUMBER}, "'shared_memory_offset' can not be specified without 'shared_memory_region' parameter for tensor 'X'"),
        ({"shared_memory_byte_size": NUMBER}, "'shared_memory_byte_size' can not be specified without 'shared_memory_region' parameter for tensor 'X'"),
    ],
)  # fmt: skip
def test_incomplete_region_parameters_have_tritons_error_texts(given, text):
    with pytest.raises(InvalidArgument) as refusal:
        parse_region(given, "X")
    assert refusal.value.message == text
