from __future__ import annotations

import json
import math

import numpy as np
import pytest

from tritonpy import InferResponse, NotFound, Tensor, Unavailable, encode_strings
from tritonpy_http_api.generate.encode import encode_response


def encoded(*tensors: Tensor, **fields):
    answer = encode_response(InferResponse(tensors, "m", 2, **fields))
    return answer.status, answer.body


def test_a_response_has_sorted_members(tensor):
    status, body = encoded(
        tensor("Z", [1, 2]), tensor("A", [3]), id="7", parameters={"b": True, "n": 3, "f": 0.5}
    )
    assert status == 200
    assert (
        body
        == b'{"A":3.0,"Z":[1.0,2.0],"b":true,"f":0.5,"id":"7","model_name":"m","model_version":"2","n":3}'
    )


def test_the_id_is_optional(tensor):
    assert json.loads(encoded()[1]) == {"model_name": "m", "model_version": "2"}


@pytest.mark.parametrize(
    ("array", "value"),
    [
        (np.array([[7]], np.int64), 7),
        (np.array(7, np.uint8), 7),
        (np.array([True]), True),
        (np.array([1, 2], np.int8), [1, 2]),
        (np.array([[1, 2], [3, 4]], np.int32), [1, 2, 3, 4]),
        (np.array([], np.float32), []),
        (np.zeros((0, 3), np.float32), []),
        (np.array([b"a"], np.object_), "a"),
        (np.array([b"a", "é".encode()], np.object_), ["a", "é"]),
        (np.array([0.1], np.float32), 0.10000000149011612),
    ],
)
def test_one_element_is_a_scalar_and_arrays_are_flat(array, value):
    assert json.loads(encoded(Tensor.from_numpy("X", array))[1])["X"] == value


def test_nan_and_infinity_are_written_like_triton(tensor):
    found = json.loads(encoded(tensor("X", [math.nan]), tensor("Y", [math.inf, -math.inf]))[1])
    assert math.isnan(found["X"])
    assert found["Y"] == [math.inf, -math.inf]


def test_non_utf8_strings_are_written_byte_by_byte():
    broken = Tensor("X", "BYTES", (1,), encode_strings([b"\xff\x00"]))
    assert b'"X":"\xff\\u0000"' in encoded(broken)[1]


def test_model_takes_precedence_over_parameters_and_those_over_outputs(tensor):
    found = json.loads(
        encoded(
            tensor("id", [1]), tensor("p", [2]), id="7", parameters={"model_name": "x", "p": "own"}
        )[1]
    )
    assert found == {"id": "7", "p": "own", "model_name": "m", "model_version": "2"}


@pytest.mark.parametrize("error", [NotFound("gone"), Unavailable("gone")])
def test_an_error_is_encoded_as_its_text(error):
    assert encoded(error=error) == (400, b'{"error":"gone"}')


@pytest.mark.parametrize("datatype", ["FP16", "BF16"])
def test_an_output_without_json_representation_is_an_error(datatype):
    status, body = encoded(Tensor.from_buffer("X", datatype, (1,), b"\0\0"))
    assert status == 400
    assert json.loads(body)["error"].startswith(
        f"sending {datatype} data via JSON is not supported"
    )


def test_an_event_is_one_line_of_data(tensor):
    answer = encode_response(
        InferResponse([Tensor.from_numpy("X", np.array([b"a\nb"], np.object_))], "m", 1)
    )
    assert answer.event() == b'data: {"X":"a\\nb","model_name":"m","model_version":"1"}\n\n'
