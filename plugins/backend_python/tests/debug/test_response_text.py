from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest

from tritonpy import InferResponse, Internal, Tensor
from tritonpy_backend_python.debug.response_text import response_text


def test_a_response_has_the_http_format() -> None:
    outputs = [Tensor.from_numpy("A", np.array([[1, 2], [3, 4]], np.int32))]
    body = json.loads(response_text(InferResponse(outputs, "m", 2, "7", {"own": 1})))
    assert body == {
        "model_name": "m", "model_version": "2", "id": "7", "parameters": {"own": 1},
        "outputs": [{"name": "A", "datatype": "INT32", "shape": [2, 2], "data": [1, 2, 3, 4]}],
    }  # fmt: skip


def test_absent_fields_are_omitted() -> None:
    assert set(json.loads(response_text(InferResponse((), "m", 1)))) == {
        "model_name",
        "model_version",
        "outputs",
    }


@pytest.mark.parametrize(
    ("array", "data"),
    [
        (np.array([b"a", "ü".encode(), b"\xff"], np.object_), ["a", "ü", "\\xff"]),
        (np.array([1.5, -2], ml_dtypes.bfloat16), [1.5, -2.0]),
        (np.array([0.5], np.float16), [0.5]),
        (np.array([True]), [True]),
        (np.zeros((0, 2), np.float32), []),
    ],
)
def test_every_datatype_has_a_json_form(array: np.ndarray, data: list[object]) -> None:
    (body,) = json.loads(response_text(InferResponse([Tensor.from_numpy("A", array)])))["outputs"]
    assert body["data"] == data


def test_an_error_response_only_has_the_error() -> None:
    assert json.loads(response_text(InferResponse((), "m", 1, error=Internal("no ü")))) == {
        "error": "no ü"
    }
