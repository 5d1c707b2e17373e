from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest

from tritonpy import InferResponse, Internal, Tensor
from tritonpy_backend_python.debug.answer_text import answer_text


def test_an_answer_is_told_as_over_http() -> None:
    outputs = [Tensor.from_numpy("A", np.array([[1, 2], [3, 4]], np.int32))]
    told = json.loads(answer_text(InferResponse(outputs, "m", 2, "7", {"own": 1})))
    assert told == {
        "model_name": "m", "model_version": "2", "id": "7", "parameters": {"own": 1},
        "outputs": [{"name": "A", "datatype": "INT32", "shape": [2, 2], "data": [1, 2, 3, 4]}],
    }  # fmt: skip


def test_what_is_not_there_is_left_out() -> None:
    assert set(json.loads(answer_text(InferResponse((), "m", 1)))) == {"model_name", "model_version", "outputs"}


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
def test_every_type_has_a_text(array: np.ndarray, data: list[object]) -> None:
    (told,) = json.loads(answer_text(InferResponse([Tensor.from_numpy("A", array)])))["outputs"]
    assert told["data"] == data


def test_an_error_is_all_that_is_told() -> None:
    assert json.loads(answer_text(InferResponse((), "m", 1, error=Internal("no ü")))) == {"error": "no ü"}
