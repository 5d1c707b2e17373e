"""Memory and devices as clients and operators see them: over the wire and on the command line."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import Serve, ServerProcess
from tests.test_failures import failed_start
from tritonpy_device_cuda.gpus import visible_gpus
from tritonpy_testing import ModelRepository

MIB = 1 << 20
HOARDER = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.hoard = np.ones(50 << 20, np.uint8)

    def execute(self, requests):
        for request in requests:
            size = int(pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()[0])
            self.hoard = np.ones(size << 20, np.uint8)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([size], np.int32))]) for _ in requests]
"""
CONFIG = """
backend: "python"
input { name: "IN" data_type: TYPE_INT32 dims: 1 }
output { name: "OUT" data_type: TYPE_INT32 dims: 1 }
instance_group { count: %d kind: KIND_CPU }
"""
FLAGS = (
    "--pinned-memory-pool-byte-size=1048576",
    "--cuda-memory-pool-byte-size=0:2097152",
    "--model-load-gpu-limit=0:0.9",
    "--min-supported-compute-capability=6.0",
)


@pytest.fixture(scope="module")
def memory_server(
    serve: Serve, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """A server of Python models that allocate 50 MiB per instance, and more on request."""
    repository = ModelRepository(tmp_path_factory.mktemp("hoarders"))
    for name, count in (("one", 1), ("two", 2)):
        repository.add(name, CONFIG % count, versions={1: {"model.py": HOARDER}})
    with serve(
        f"--model-repository={repository.path}",
        "--model-control-mode=explicit",
        "--load-model=*",
        *FLAGS,
    ) as server:
        yield server


def usage(server: ServerProcess, model: str) -> list[dict[str, Any]]:
    (statistics,) = server.request(f"/v2/models/{model}/stats").json()["model_stats"]
    return list(statistics["memory_usage"])


def on_host(server: ServerProcess, model: str) -> int:
    (only,) = usage(server, model)
    assert (only["type"], only["id"]) == ("CPU", 0)
    return int(only["byte_size"])


def metrics(server: ServerProcess) -> dict[str, float]:
    connection = http.client.HTTPConnection("127.0.0.1", server.ports["metrics"], timeout=60)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))
    }


def test_a_python_model_reports_the_resident_memory_of_its_processes(
    memory_server: ServerProcess,
) -> None:
    one, two = on_host(memory_server, "one"), on_host(memory_server, "two")
    assert 50 * MIB < one < 150 * MIB
    assert 100 * MIB < two < 250 * MIB


def test_reported_memory_follows_allocations_of_the_model(memory_server: ServerProcess) -> None:
    before = on_host(memory_server, "one")
    body = {"inputs": [{"name": "IN", "datatype": "INT32", "shape": [1], "data": [150]}]}
    assert memory_server.request("/v2/models/one/infer", json.dumps(body)).status == 200
    memory_server.wait(lambda: on_host(memory_server, "one") > before + 80 * MIB, "the model grows")


def test_reported_memory_is_the_same_over_grpc_and_in_the_metrics(
    memory_server: ServerProcess,
) -> None:
    import tritonclient.grpc

    with tritonclient.grpc.InferenceServerClient(memory_server.grpc) as client:
        (statistics,) = client.get_inference_statistics("two").model_stats
    (reported,) = statistics.memory_usage
    assert (reported.type, reported.id) == ("CPU", 0)
    metric_values = metrics(memory_server)[
        'nv_model_memory_bytes{device="0",kind="CPU",model="two",version="1"}'
    ]
    assert np.isclose(reported.byte_size, on_host(memory_server, "two"), rtol=0.1)
    assert np.isclose(metric_values, reported.byte_size, rtol=0.1)


def test_the_pinned_memory_pool_has_the_configured_size(memory_server: ServerProcess) -> None:
    metric_values = {
        name: value
        for name, value in metrics(memory_server).items()
        if name.startswith("nv_pinned")
    }
    assert metric_values["nv_pinned_memory_pool_total_bytes"] == MIB
    assert metric_values["nv_pinned_memory_pool_used_bytes"] == 0


@pytest.mark.skipif(bool(visible_gpus()), reason="needs a machine without a GPU")
def test_without_a_gpu_the_process_loads_no_cuda_library(memory_server: ServerProcess) -> None:
    maps = Path(f"/proc/{memory_server.process.pid}/maps").read_text(encoding="utf-8")
    assert not [
        line for line in maps.splitlines() if "cuda" in line.lower() or "nvidia" in line.lower()
    ]


@pytest.mark.parametrize(
    ("flag", "why"),
    [
        (
            "--model-load-gpu-limit=0:2",
            "expects limit fraction to be in range [0.0, 1.0], got 2.000000",
        ),
        ("--model-load-gpu-limit=-1:0.5", "expects device ID >= 0, got -1"),
        (
            "--model-load-gpu-limit=0.5",
            "Cannot parse pair option due to incorrect number of inputs.",
        ),
        ("--cuda-memory-pool-byte-size=0:-1", "expected a size"),
        ("--pinned-memory-pool-byte-size=-1", "expected a size"),
    ],
)
def test_an_invalid_memory_flag_is_named_with_the_reason(
    serve: Serve, flag: str, why: str, tmp_path: Path
) -> None:
    output = failed_start(serve, f"--model-repository={tmp_path}", flag)
    assert flag.partition("=")[0] in output
    assert why in output
