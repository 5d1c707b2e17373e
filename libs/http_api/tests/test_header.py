from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from tritonpy import Internal, InvalidArgument, TritonError
from tritonpy_http_api.header import InferHeader, check_one_source, read_header

A = {"name": "A", "datatype": "INT32", "shape": [1, 4], "data": [1, 2, 3, 4]}


def read(value) -> InferHeader:
    return read_header(value if isinstance(value, bytes) else json.dumps(value).encode())


def test_a_complete_header_is_decoded():
    output = {"name": "Y", "parameters": {"binary_data": True, "classification": 3}}
    header = read(
        {"id": "q", "inputs": [A], "outputs": [output], "parameters": {"x": 1}, "unknown": []}
    )
    assert (header.id, header.parameters) == ("q", {"x": 1})
    assert (header.inputs[0].shape, header.inputs[0].data, header.inputs[0].parameters) == (
        [1, 4],
        [1, 2, 3, 4],
        UNSET,
    )
    assert (
        header.outputs[0].parameters.binary_data,
        header.outputs[0].parameters.classification,
    ) == (True, 3)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([], "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'"),
        (1, "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'"),
        ({"inputs": {}}, "Unable to parse 'inputs': attempt to access JSON non-array as array"),
        (
            {"inputs": [A], "id": 3},
            "Unable to parse 'id': attempt to access JSON non-string as string",
        ),
        (
            {"inputs": [A], "id": None},
            "Unable to parse 'id': attempt to access JSON non-string as string",
        ),
        (
            {"inputs": [A], "parameters": []},
            "failed to get request params.: attempt to get members for non-object",
        ),
        (
            {"inputs": [A], "parameters": None},
            "failed to get request params.: attempt to get members for non-object",
        ),
        (
            {"inputs": [{"data": []}]},
            "Unable to parse 'name': attempt to access non-existing object member 'name'",
        ),
        (
            {"inputs": [{**A, "name": 1}]},
            "Unable to parse 'name': attempt to access JSON non-string as string",
        ),
        (
            {"inputs": [{"name": "A", "shape": [4], "data": []}]},
            "Unable to parse 'datatype': attempt to access non-existing object member 'datatype'",
        ),
        (
            {"inputs": [{**A, "shape": [-1, 4]}]},
            "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer",
        ),
        (
            {"inputs": [{**A, "shape": [1.0]}]},
            "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer",
        ),
        (
            {"inputs": [{**A, "shape": {}}]},
            "Unable to parse 'shape': attempt to access JSON non-array as array",
        ),
        (
            {
                "inputs": [
                    {
                        "name": "A",
                        "datatype": "INT32",
                        "shape": [1],
                        "parameters": {"binary_data_size": -1},
                    }
                ]
            },
            "Unable to parse 'binary_data_size': attempt to access JSON non-unsigned-integer as unsigned-integer",
        ),
        (
            {
                "inputs": [
                    {
                        "name": "A",
                        "datatype": "INT32",
                        "shape": [1],
                        "parameters": {"shared_memory_region": 1},
                    }
                ]
            },
            "Unable to parse 'shared_memory_region': attempt to access JSON non-string as string",
        ),
        (
            {"inputs": [A], "outputs": 3},
            "Unable to parse 'outputs': attempt to access JSON non-array as array",
        ),
        (
            {"inputs": [A], "outputs": None},
            "Unable to parse 'outputs': attempt to access JSON non-array as array",
        ),
        (
            {"inputs": [A], "outputs": [3]},
            "Unable to parse 'name': attempt to access non-existing object member 'name'",
        ),
        (
            {"inputs": [A], "outputs": [{"name": "S", "parameters": {"classification": -2}}]},
            "Unable to set 'classification': attempt to access JSON non-unsigned-integer as unsigned-integer",
        ),
        (
            {"inputs": [A], "outputs": [{"name": "S", "parameters": {"binary_data": 1}}]},
            "Unable to parse 'binary_data': attempt to access JSON non-boolean as boolean",
        ),
        (
            {
                "inputs": [A],
                "outputs": [
                    {"name": "S", "parameters": {"shared_memory_region": "r", "binary_data": 1}}
                ],
            },
            "Unable to set 'binary_data': attempt to access JSON non-boolean as boolean",
        ),
    ],
)
def test_members_of_the_wrong_type_have_tritons_error_texts(value, text):
    with pytest.raises(Internal) as caught:
        read(value)
    assert caught.value.message == text


def test_an_input_must_be_an_object():
    with pytest.raises(InvalidArgument, match=r"But no field is set"):
        read({"inputs": [3]})


def test_headers_beyond_typed_decoding_use_the_slow_path():
    header = read(
        b'{"inputs":[{"name":"A","datatype":"FP32","shape":[2],"data":[NaN,Infinity],"parameters":1}]}'
    )
    assert str(header.inputs[0].data) == "[nan, inf]"
    assert read({"inputs": [A], "outputs": [{"name": "S", "parameters": 1}]}).outputs[0].name == "S"


def test_deep_nesting_is_refused():
    for raw in (b'{"inputs":' + b"[" * 10_000, b'{"x":' + b"[" * 10_000 + b"]" * 10_000 + b"}"):
        with pytest.raises(
            InvalidArgument, match=r"nesting depth exceeds maximum allowed limit \(100\)"
        ):
            read(raw)


@pytest.mark.parametrize(
    ("extra", "found"),
    [
        ({}, "no field is set"),
        ({"data": [1], "parameters": {"binary_data_size": 4}}, "set 'data' 'binary_data_size'"),
        (
            {"data": [1], "parameters": {"binary_data_size": 4, "shared_memory_region": "r"}},
            "set 'data' 'binary_data_size' 'shared_memory_region'",
        ),
    ],
)
def test_an_input_has_exactly_one_source(extra, found):
    item = {"name": "A", "datatype": "INT32", "shape": [1], **extra}
    for raw in (
        json.dumps({"inputs": [item]}),
        json.dumps({"inputs": [item], "x": 0}).replace("0", "NaN"),
    ):
        with pytest.raises(InvalidArgument) as caught:
            check_one_source(read(raw.encode()).inputs[0])
        assert caught.value.message.endswith(f"But {found}")


fields = st.dictionaries(
    st.sampled_from(
        [
            "name",
            "datatype",
            "shape",
            "data",
            "parameters",
            "id",
            "inputs",
            "outputs",
            "binary_data_size",
        ]
    ),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["name", "shape", "parameters", "binary_data"]), inner, max_size=3
            )
        ),
    ),
)


@given(fields)
def test_arbitrary_objects_are_read_or_refused(value):
    try:
        assert isinstance(read(value), InferHeader)
    except TritonError as error:
        assert error.message  # noqa: PT017
