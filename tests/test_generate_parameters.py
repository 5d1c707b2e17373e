"""Generate requests with parameters that a model does not read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Models, Serve, ServerProcess, tensors_text

ECHO = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([request.parameters()], dtype=object))])
            for request in requests
        ]
"""
ENSEMBLE = """
platform: "ensemble"
input [{ name: "IN" data_type: TYPE_FP32 dims: [1] }] output [{ name: "OUT" data_type: TYPE_FP32 dims: [1] }]
ensemble_scheduling { step { model_name: "plain" model_version: -1
  input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" } } }
"""
REFUSED = {"error": "unknown parameter 'INN' for model '%s'; did you mean 'IN'?"}


@pytest.fixture
def repository(models: Models) -> Models:
    """An ONNX model, an ensemble of it, and a Python model that returns request parameters."""
    models.identity("plain", "FP32", [1], tensors_text("FP32", "1"))
    models.repository.add("joined", ENSEMBLE)
    outputs = tensors_text("FP32", "1").replace(
        'output [{ name: "OUT" data_type: TYPE_FP32', 'output [{ name: "OUT" data_type: TYPE_STRING'
    )
    models.repository.add(
        "reads_any", f'backend: "python"\n{outputs}', {1: {"model.py": ECHO.encode()}}
    )
    return models


def generate(served: ServerProcess, model: str, body: str) -> tuple[int, Any]:
    response = served.request(f"/v2/models/{model}/generate", body)
    return response.status, response.json()


def test_onnx_models_reject_parameters_and_python_models_accept_them(
    serve: Serve, repository: Models
) -> None:
    with serve(f"--model-repository={repository.path}") as served:
        for model in ("plain", "joined"):
            assert generate(served, model, '{"IN": 4, "id": "7"}')[1]["OUT"] == 4
            status, response = generate(served, model, '{"IN": 4, "parameters": {"INN": 5}}')
            assert (status, response["error"]) == (400, REFUSED["error"] % model)
        assert generate(served, "reads_any", '{"IN": 4, "INN": 5}')[1]["OUT"] == '{"INN":5}'


def test_a_flag_forwards_them_as_triton_does(serve: Serve, repository: Models) -> None:
    flag = "--http-generate-unknown-parameters=forward"
    with serve(f"--model-repository={repository.path}", flag) as served:
        for model in ("plain", "joined"):
            assert generate(served, model, '{"IN": 4, "INN": 5}')[1]["OUT"] == 4
