"""Warm-up of models before they are ready: threads and processes, ONNX Runtime and Python."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from onnx import TensorProto, helper

from tests.conftest import Models, Serve, ServerProcess
from tests.uneven_models import identity, onnx_file

PLACES = {
    "thread": "",
    "process": 'parameters { key: "isolation" value { string_value: "process" } }',
}
SAMPLE = """
    max_batch_size: 4
    instance_group { count: 2 kind: KIND_CPU }
    model_warmup { name: "cold" batch_size: 3 count: 2 inputs { key: "IN" value { data_type: TYPE_FP32 dims: 2 random_data: true } } }
"""
TENSORS = """
    input { name: "IN" data_type: TYPE_FP32 dims: 2 }
    output { name: "OUT" data_type: TYPE_FP32 dims: 2 }
"""
CODE = """
import os
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.warm = 0

    def execute(self, requests):
        first = requests[0].inputs()[0].as_numpy()[0, 0]
        if first == 666:
            os.kill(os.getpid(), 9)
        self.warm += len(requests) == 3
        out = np.full((1, 2), self.warm, np.float32)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", out)]) for _ in requests]
"""
LATE = """
import threading


class TritonPythonModel:
    def execute(self, requests):
        threading.Event().wait()
"""


def table() -> bytes:
    """OUT = the rows of a table of two rows that IN selects; any other index is an error."""
    rows = helper.make_tensor("rows", TensorProto.INT32, [2], [7, 8])
    node = helper.make_node("Gather", ["rows", "IN"], ["OUT"])
    return onnx_file([node], {"IN": ["batch", 2]}, {"OUT": ["batch", 2]}, [rows], "INT32")


@pytest.fixture(scope="module")
def warm(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with warmed-up models, and some that cannot be loaded."""
    models = Models(tmp_path_factory.mktemp("warm") / "models")
    for place, more in PLACES.items():
        models.repository.add(
            f"onnx_{place}", TENSORS + SAMPLE + more, {1: {"model.onnx": identity("batch", 2)}}
        )
        broken = (TENSORS + SAMPLE + more).replace("FP32", "INT32")
        models.repository.add(f"beyond_{place}", broken, {1: {"model.onnx": table()}})
    for place in PLACES:
        more = f'backend: "python" parameters {{ key: "isolation" value {{ string_value: "{place}" }} }}'
        models.repository.add(f"python_{place}", TENSORS + SAMPLE + more, {1: {"model.py": CODE}})
    limited = 'backend: "python" parameters { key: "EXECUTION_LIMIT_SECONDS" value { string_value: "0.3" } }'
    models.repository.add("late", TENSORS + SAMPLE + limited, {1: {"model.py": LATE}})
    flags = ("--exit-on-error=false", "--log-verbose=1", "--strict-readiness=false")
    with serve(f"--model-repository={models.path}", *flags) as served:
        yield served


def index(served: ServerProcess) -> list[dict[str, str]]:
    found: list[dict[str, str]] = served.request("/v2/repository/index", b"").json()
    return found


def infer(served: ServerProcess, model: str, first: float = 0) -> list[float]:
    body = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 2], "data": [first, 0]}]}
    response = served.request(f"/v2/models/{model}/infer", json.dumps(body))
    found: list[float] = response.json()["outputs"][0]["data"]
    return found


@pytest.mark.parametrize(
    "model", [f"{kind}_{place}" for kind in ("onnx", "python") for place in PLACES]
)
def test_every_instance_runs_every_sample_and_statistics_do_not_count_it(
    warm: ServerProcess, model: str
) -> None:
    for instance in range(2):
        for iteration in (1, 2):
            what = f"is running warmup sample 'cold' for iteration {iteration}"
            assert f"model '{model}' instance {model}_0_{instance} {what}" in warm.log
        assert re.search(f"{model}_0_{instance} is warmed up, after ", warm.log)
    (statistics,) = warm.request(f"/v2/models/{model}/stats").json()["model_stats"]
    if statistics["inference_count"] == 0:
        assert statistics["execution_count"] == 0
        assert statistics["last_inference"] == 0
    assert warm.request(f"/v2/models/{model}/ready").status == 200


@pytest.mark.parametrize("place", PLACES)
def test_a_python_model_sees_all_samples_before_its_first_request(
    warm: ServerProcess, place: str
) -> None:
    assert infer(warm, f"python_{place}") == [2, 2]


def test_a_restarted_process_is_warmed_up_again(warm: ServerProcess) -> None:
    body = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 2], "data": [666, 0]}]}
    assert warm.request("/v2/models/python_process/infer", json.dumps(body)).status == 500
    again = warm.wait(
        lambda: re.search(r"(python_process_0_\d) is restarted(?! in)\W", warm.log),
        "it is started again",
    )
    assert (
        warm.log.count(f"instance {again[1]} is running warmup sample 'cold' for iteration 2") == 2
    )
    assert [infer(warm, "python_process") for _ in range(4)] == [[2, 2]] * 4


@pytest.mark.parametrize("place", PLACES)
def test_the_load_error_contains_the_framework_error(warm: ServerProcess, place: str) -> None:
    (found,) = [each for each in index(warm) if each["name"] == f"beyond_{place}"]
    assert found["state"] == "UNAVAILABLE"
    assert found["reason"].startswith("Invalid argument: failed to run warmup sample 'cold': ")
    assert "indices element out of data bounds" in found["reason"]


def test_a_model_that_hangs_is_stopped_at_its_time_limit(warm: ServerProcess) -> None:
    (found,) = [each for each in index(warm) if each["name"] == "late"]
    assert found["state"] == "UNAVAILABLE"
    assert "took longer than the limit of 0.3 s" in found["reason"]
