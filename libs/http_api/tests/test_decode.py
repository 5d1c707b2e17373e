from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tritonpy import (
    DTYPES,
    CallbackSink,
    Internal,
    InvalidArgument,
    OutputSpec,
    SequenceInfo,
    Tensor,
    TritonError,
)
from tritonpy.frontend import RegionSlice
from tritonpy_http_api.decode import decode_infer, header_length

SINK = CallbackSink(lambda request, response: None)
X = {"name": "X", "datatype": "INT32", "shape": [2], "data": [1, 2]}


def decode(header, tail=b"", limit=1 << 26):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return decode_infer(raw + tail, len(raw), "m", 3, SINK, limit)


def refused(kind, header, tail=b"", **options):
    with pytest.raises(kind) as caught:
        decode(header, tail, **options)
    return caught.value.message


def binary(name, tensor):
    return {
        "name": name, "datatype": tensor.datatype, "shape": list(tensor.shape),
        "parameters": {"binary_data_size": tensor.nbytes},
    }  # fmt: skip


def test_a_json_request():
    request, as_binary = decode({"id": "q", "inputs": [X]})
    assert (request.model_name, request.model_version, request.id, request.outputs) == (
        "m",
        3,
        "q",
        None,
    )
    assert request.inputs["X"].numpy().tolist() == [1, 2]
    assert not as_binary
    assert not request.accepts_decoupled


@given(st.lists(st.sampled_from(list(DTYPES)), min_size=1, max_size=4), st.data())
def test_binary_tensors_are_views_in_order(datatypes, data):
    tensors = {}
    for index, datatype in enumerate(datatypes):
        if datatype == "BYTES":
            values = data.draw(st.lists(st.binary(max_size=5), max_size=4))
            tensors[str(index)] = Tensor.from_numpy("", np.array(values, np.object_))
            continue
        shape = data.draw(hnp.array_shapes(min_dims=0, max_side=3) | st.just((0, 3)))
        raw = data.draw(
            st.binary(min_size=int(np.prod(shape)) * DTYPES[datatype].itemsize).map(bytes)
        )
        size = int(np.prod(shape)) * DTYPES[datatype].itemsize
        tensors[str(index)] = Tensor.from_buffer("", datatype, shape, raw[:size])
    tail = b"".join(tensor.data.tobytes() for tensor in tensors.values())
    request, _ = decode(
        {"inputs": [binary(name, tensor) for name, tensor in tensors.items()]}, tail
    )
    assert list(request.inputs) == list(tensors)
    for name, tensor in tensors.items():
        found = request.inputs[name]
        assert (found.datatype, found.shape, found.data.dtype) == (
            tensor.datatype,
            tensor.shape,
            tensor.data.dtype,
        )
        assert found.data.tobytes() == tensor.data.tobytes()
        assert not found.data.flags.owndata


def test_json_and_binary_inputs_mix():
    tensor = Tensor.from_numpy("B", np.array([7], np.int64))
    request, _ = decode({"inputs": [X, binary("B", tensor)]}, tensor.data.tobytes())
    assert request.inputs["B"].numpy().tolist() == [7]


def test_a_size_mismatch_is_left_to_validation():
    given = {"name": "X", "datatype": "INT32", "shape": [2], "parameters": {"binary_data_size": 5}}
    request, _ = decode({"inputs": [given]}, b"12345")
    assert (request.inputs["X"].nbytes, request.inputs["X"].shape) == (5, (2,))


def test_missing_and_additional_data_are_errors():
    given = {
        "inputs": [
            {"name": "X", "datatype": "INT32", "shape": [4], "parameters": {"binary_data_size": 16}}
        ]
    }
    assert refused(InvalidArgument, given, bytes(5)) == (
        "unexpected size for input 'X', expecting 11 additional bytes for model 'm'"
    )
    assert (
        refused(InvalidArgument, given, bytes(17))
        == "unexpected additional input data for model 'm'"
    )
    assert (
        refused(InvalidArgument, {"inputs": [X]}, b"x")
        == "unexpected additional input data for model 'm'"
    )


@pytest.mark.parametrize("shape", [[0, 2**63], [1] * 70])
def test_an_invalid_shape_is_refused(shape):
    size = 0 if 0 in shape else 4
    given = {
        "name": "X",
        "datatype": "INT32",
        "shape": shape,
        "parameters": {"binary_data_size": size},
    }
    assert "invalid shape for input 'X'" in refused(
        InvalidArgument, {"inputs": [given]}, bytes(size)
    )


def test_an_unknown_datatype_in_binary_is_refused():
    given = {"name": "X", "datatype": "INT33", "shape": [1], "parameters": {"binary_data_size": 4}}
    assert "[request id: q] inference input 'X' data-type is '<invalid>'" in refused(
        InvalidArgument, {"id": "q", "inputs": [given]}, bytes(4)
    )


def test_duplicate_names_are_refused():
    assert refused(InvalidArgument, {"inputs": [X, X]}) == (
        "[request id: <id_unknown>] input 'X' already exists in request"
    )
    assert refused(
        InvalidArgument, {"id": "q", "inputs": [X], "outputs": [{"name": "Y"}, {"name": "Y"}]}
    ) == ("[request id: q] output 'Y' already exists in request")


def test_an_input_needs_a_source():
    bare = {"name": "X", "datatype": "INT32", "shape": [1]}
    assert "But no field is set" in refused(InvalidArgument, {"inputs": [bare]})


REGION = {
    "shared_memory_region": "r",
    "shared_memory_byte_size": 2**64 - 1,
    "shared_memory_offset": 8,
}


def test_an_input_in_shared_memory_is_left_to_the_engine():
    far = {"name": "R", "datatype": "INT32", "shape": [1], "parameters": REGION}
    binary_input = {
        "name": "B",
        "datatype": "INT8",
        "shape": [2],
        "parameters": {"binary_data_size": 2},
    }
    request, _ = decode({"inputs": [far, X, binary_input]}, b"\x01\x02")
    assert request.uses_regions
    region = request.inputs["R"]
    assert (region.datatype, region.shape, region.data) == (
        "INT32",
        (1,),
        RegionSlice("r", 8, 2**64 - 1),
    )
    assert request.inputs["B"].numpy().tolist() == [1, 2]
    assert not decode({"inputs": [X]})[0].uses_regions


def test_the_default_offset_is_zero():
    far = {
        "name": "R",
        "datatype": "INT32",
        "shape": [1],
        "parameters": {"shared_memory_region": "r"},
    }
    assert decode({"inputs": [far]})[0].inputs["R"].data == RegionSlice("r", 0, 0)


def test_an_unknown_datatype_in_shared_memory_is_refused():
    far = {"name": "R", "datatype": "INT33", "shape": [1], "parameters": REGION}
    assert "data-type is '<invalid>'" in refused(InvalidArgument, {"inputs": [far]})


@pytest.mark.parametrize("value", [-1, 2**64, 1.5, "1", None])
@pytest.mark.parametrize("key", ["shared_memory_offset", "shared_memory_byte_size"])
def test_shared_memory_numbers_are_unsigned_64_bit(key, value):
    parameters = {"shared_memory_region": "r", key: value}
    text = (
        f"Unable to parse '{key}': attempt to access JSON non-unsigned-integer as unsigned-integer"
    )
    assert (
        refused(
            Internal,
            {
                "inputs": [
                    {"name": "R", "datatype": "INT32", "shape": [1], "parameters": parameters}
                ]
            },
        )
        == text
    )
    assert (
        refused(Internal, {"inputs": [X], "outputs": [{"name": "Y", "parameters": parameters}]})
        == text
    )


def test_an_output_may_go_to_shared_memory():
    outputs = [{"name": "Y", "parameters": {**REGION, "binary_data": False}}, {"name": "Z"}]
    request, _ = decode({"inputs": [X], "outputs": outputs})
    assert request.uses_regions
    assert request.outputs == {
        "Y": OutputSpec("Y", region="r", offset=8, byte_size=2**64 - 1), "Z": OutputSpec("Z"),
    }  # fmt: skip


def test_output_parameters_are_decoded():
    outputs = [
        {"name": "a"}, {"name": "b", "parameters": {"binary_data": True}},
        {"name": "c", "parameters": {"classification": 2}}, {"name": "d", "parameters": {"other": 1}},
    ]  # fmt: skip
    request, _ = decode({"inputs": [X], "outputs": outputs})
    assert request.outputs == {
        "a": OutputSpec("a"), "b": OutputSpec("b", binary=True), "c": OutputSpec("c", 2), "d": OutputSpec("d"),
    }  # fmt: skip
    assert request.classifies
    assert not decode({"inputs": [X], "outputs": outputs[:2]})[0].classifies


def test_no_outputs_means_all_outputs():
    assert decode({"inputs": [X], "outputs": []})[0].outputs is None
    assert decode({"inputs": [X], "parameters": {"binary_data_output": True}})[1]


@pytest.mark.parametrize("other", [{"classification": 1}, {"binary_data": True}])
def test_shared_memory_excludes_other_output_parameters(other):
    given = {"name": "Y", "parameters": {"shared_memory_region": "r", **other}}
    text = refused(InvalidArgument, {"inputs": [X], "outputs": [given]})
    assert text == f"Output can't set both 'shared_memory_region' and '{next(iter(other))}'"


def test_parameters_with_a_meaning():
    given = {
        "sequence_id": 5,
        "sequence_start": True,
        "sequence_end": False,
        "priority": 2,
        "timeout": 7,
    }
    request, _ = decode({"inputs": [X], "parameters": given})
    assert (request.sequence, request.priority, request.timeout_us) == (
        SequenceInfo(5, True, False),
        2,
        7,
    )
    assert request.parameters == {}
    assert decode({"inputs": [X], "parameters": {"sequence_id": "s"}})[0].sequence == SequenceInfo(
        "s"
    )
    assert decode({"inputs": [X], "parameters": {"sequence_id": 0}})[0].sequence is None


def test_other_parameters_are_forwarded():
    given = {"a": 1, "b": "s", "c": 1.5, "d": True, "e": 2**63}
    assert decode({"inputs": [X], "parameters": given})[0].parameters == {
        **given,
        "e": float(2**63),
    }


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        (
            {"sequence_id": -1},
            Internal,
            "Unable to parse 'sequence_id': attempt to access JSON non-string as string",
        ),
        (
            {"sequence_id": True},
            Internal,
            "Unable to parse 'sequence_id': attempt to access JSON non-string as string",
        ),
        (
            {"sequence_start": 1},
            Internal,
            "Unable to parse 'sequence_start': attempt to access JSON non-boolean as boolean",
        ),
        (
            {"priority": -1},
            Internal,
            "Unable to parse 'priority': attempt to access JSON non-unsigned-integer as unsigned-integer",
        ),
        (
            {"timeout": "1"},
            Internal,
            "Unable to parse 'timeout': attempt to access JSON non-unsigned-integer as unsigned-integer",
        ),
        (
            {"triton_x": 1},
            InvalidArgument,
            "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
        ),
        (
            {"a": None},
            InvalidArgument,
            "parameter 'a' has invalid type. It should be either 'int', 'bool', or 'string'.",
        ),
        (
            {"a": {}},
            InvalidArgument,
            "parameter 'a' has invalid type. It should be either 'int', 'bool', or 'string'.",
        ),
    ],
)
def test_invalid_parameters_have_tritons_error_texts(given, kind, text):
    assert refused(kind, {"inputs": [X], "parameters": given}) == text


def test_the_size_limit_applies_to_json_only():
    assert "request JSON size of" in refused(InvalidArgument, {"inputs": [X]}, limit=20)
    given = {
        "inputs": [
            {
                "name": "X",
                "datatype": "UINT8",
                "shape": [500],
                "parameters": {"binary_data_size": 500},
            }
        ]
    }
    assert decode(given, bytes(500), limit=200)[0].inputs["X"].nbytes == 500
    assert "JSON input 'X' has a byte_size" in refused(
        InvalidArgument,
        {"inputs": [{**X, "datatype": "INT64", "shape": [50], "data": [1] * 50}]},
        limit=399,
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"-1", "inference header size should be in range (0, 230), got: -1"),
        (b"231", "inference header size should be in range (0, 230), got: 231"),
        (b"2147483647", "inference header size should be in range (0, 230), got: 2147483647"),
        (b"2147483648", "Unable to parse Inference-Header-Content-Length, got: 2147483648"),
        (b"abc", "Unable to parse Inference-Header-Content-Length, got: abc"),
        (b"", "Unable to parse Inference-Header-Content-Length, got: "),
        (b"x1", "Unable to parse Inference-Header-Content-Length, got: x1"),
        (b"9" * 9000, f"Unable to parse Inference-Header-Content-Length, got: {'9' * 80}"),
    ],
)
def test_bad_header_lengths_are_refused(value, text):
    with pytest.raises(InvalidArgument) as caught:
        header_length(value, 230)
    assert caught.value.message == text


@pytest.mark.parametrize(
    ("value", "length"), [(b"12", 12), (b" +12 ", 12), (b"12.5", 12), (b"12x", 12), (b"0x12", 0)]
)
def test_text_after_a_header_length_is_ignored(value, length):
    assert header_length(value, 230) == length


def test_good_header_lengths():
    assert [header_length(value, 230) for value in (None, b"230", b"0", b"17")] == [230, 230, 0, 17]


@given(st.binary(max_size=200), st.integers(0, 200))
def test_arbitrary_bytes_are_refused(body, size):
    with pytest.raises(TritonError):
        decode_infer(body, min(size, len(body)), "m", -1, SINK, 1000)
