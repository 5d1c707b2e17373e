"""Memory budgets: many models, capacity for few, and traffic over both protocols."""

from __future__ import annotations

import http.client
import json
import random
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from onnx import TensorProto, helper, numpy_helper
from tritonclient.grpc import service_pb2, service_pb2_grpc

from tests.conftest import ROOT
from tritonpy import Backend, MemoryUsage, ModelContext, hookimpl
from tritonpy.api.backend import Array
from tritonpy.metrics import SERVER_METRICS
from tritonpy_residency.policy import LruPolicy
from tritonpy_testing import ModelRepository, RunningServer, running_server

SIZE = 1 << 20
CONFIG = """
backend: "weights"
input { name: "IN" data_type: TYPE_INT32 dims: 1 }
output { name: "OUT" data_type: TYPE_INT32 dims: 1 }
"""
BODY = json.dumps({"inputs": [{"name": "IN", "datatype": "INT32", "shape": [1], "data": [1]}]})


class MemoryMeter:
    """Sums up the memory of all models of a test."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.held = self.most = 0

    def add(self, size: int) -> None:
        with self.lock:
            self.held += size
            self.most = max(self.most, self.held)


class WeightsPlugin:
    """A backend that reads weights into memory and adds their first byte to each input."""

    def __init__(self, meter: MemoryMeter) -> None:
        class Weights(Backend):
            default_filenames = ("weights.bin",)

            @classmethod
            def load(cls, model: ModelContext) -> object:
                weights = np.fromfile(model.path / "weights.bin", np.uint8)
                meter.add(weights.nbytes)
                return weights

            def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
                time.sleep(0.002)  # so that models are in use
                return {"OUT": inputs["IN"] + np.int32(self.model.shared[0])}

            @classmethod
            def shared_memory_usage(cls, shared: Any) -> Sequence[MemoryUsage]:
                return [MemoryUsage("CPU", 0, shared.nbytes)]

            @classmethod
            def unload(cls, shared: Any) -> None:
                meter.add(-shared.nbytes)

        self._backend = Weights

    @hookimpl
    def tritonpy_backends(self) -> Mapping[str, type[Backend]]:
        return {"weights": self._backend}


@pytest.fixture
def meter() -> MemoryMeter:
    return MemoryMeter()


@contextmanager
def measured_server(
    repository: ModelRepository, meter: MemoryMeter, models: int, **memory: Any
) -> Iterator[RunningServer]:
    for number in range(models):
        weights = bytes([number]) * SIZE
        repository.add(f"m{number}", CONFIG, {1: {"weights.bin": weights}})
    frontends = {name: {"port": 0} for name in ("http", "grpc", "metrics")}
    config = {
        "repositories": [{"url": str(repository.path)}],
        "frontends": frontends,
        "memory": {"lazy": ["*"]} | memory,
    }
    with running_server(config, [WeightsPlugin(meter)]) as server:
        yield server


def memory_status(server: RunningServer) -> Any:
    return json.loads(_request(server.http, "GET", "/v2/memory")[2])


def _request(
    address: str, method: str, path: str, body: str | None = None
) -> tuple[int, Mapping[str, str], str]:
    connection = http.client.HTTPConnection(address, timeout=30)
    try:
        connection.request(method, path, body)
        with connection.getresponse() as response:
            return response.status, dict(response.getheaders()), response.read().decode()
    finally:
        connection.close()


class Client:
    """Sends requests over one of the protocols."""

    def __init__(self, server: RunningServer, protocol: str) -> None:
        self._module = tritonclient.http if protocol == "http" else tritonclient.grpc
        self._client = self._module.InferenceServerClient(
            server.http if protocol == "http" else server.grpc
        )

    def infer(self, model: int, value: int) -> int:
        tensor = self._module.InferInput("IN", [1], "INT32")
        tensor.set_data_from_numpy(np.array([value], np.int32))
        return int(self._client.infer(f"m{model}", [tensor]).as_numpy("OUT")[0])

    def close(self) -> None:
        self._client.close()


def spied_evictions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that receives the number of requests of each evicted version."""
    seen: list[int] = []
    evict = LruPolicy.evict

    def spied(self: LruPolicy, key: str) -> bool:
        models = self._table.ready(key)
        gone = evict(self, key)
        if gone:
            seen.append(sum(model.in_flight for model in models))
        return gone

    monkeypatch.setattr(LruPolicy, "evict", spied)
    return seen


@pytest.mark.parametrize("skew", [0.0, 1.0], ids=["uniform", "zipf"])
def test_random_traffic_to_fifty_models_with_a_budget_for_ten(
    model_repository: ModelRepository,
    meter: MemoryMeter,
    monkeypatch: pytest.MonkeyPatch,
    skew: float,
) -> None:
    weights = [1 / (rank + 1) ** skew for rank in range(50)]
    in_use = spied_evictions(monkeypatch)
    with measured_server(model_repository, meter, 50, budget="10MiB") as server:

        def traffic(seed: int) -> int:
            client = Client(server, "http" if seed % 2 else "grpc")
            draw = random.Random(seed)
            try:
                for value in range(100):
                    (model,) = draw.choices(range(50), weights)
                    assert client.infer(model, value) == value + model
            finally:
                client.close()
            return 100

        with ThreadPoolExecutor(8) as clients:
            request_count = sum(clients.map(traffic, range(8)))
        status = memory_status(server)
    assert status["hits"] + status["misses"] == request_count
    assert status["refusals"] == status["load_failures"] == status["waiting_requests"] == 0
    assert meter.most <= 10 * SIZE, "the scale of the models themselves"
    assert status["highest"]["all"] <= 10 * SIZE, "the server's own book"
    assert len(in_use) == status["evictions"] > 10
    assert not any(in_use), "some model had requests when it was evicted"
    assert meter.held == 0
    print(
        f"hit rate {status['hits'] / request_count:.1%} ({request_count} requests over both protocols, {status['loads']} loads, "
        f"{status['evictions']} evictions, at most {status['highest']['all'] / SIZE:.0f} of 10 MiB held)"
    )


def test_a_lazy_model_that_does_not_fit_is_rejected_with_a_retry_time(
    model_repository: ModelRepository, meter: MemoryMeter
) -> None:
    with measured_server(
        model_repository, meter, 2, budget="1MiB", first_request="refuse", retry_s=3
    ) as server:
        status, headers, text = _request(server.http, "POST", "/v2/models/m0/infer", BODY)
        assert status == 503
        assert {key.lower(): value for key, value in headers.items()}["retry-after"] == "3"
        assert "not loaded yet" in text
        tensor = service_pb2.ModelInferRequest.InferInputTensor(
            name="IN", datatype="INT32", shape=[1]
        )
        request_count = service_pb2.ModelInferRequest(
            model_name="m1", inputs=[tensor], raw_input_contents=[bytes(4)]
        )
        with grpc.insecure_channel(server.grpc) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            with pytest.raises(grpc.RpcError) as late:
                stub.ModelInfer(request_count)
        assert late.value.code() is grpc.StatusCode.UNAVAILABLE
        assert dict(late.value.trailing_metadata())["retry-after"] == "3"


def test_metrics_include_the_budget_and_lazy_models(
    model_repository: ModelRepository, meter: MemoryMeter
) -> None:
    with measured_server(
        model_repository, meter, 3, budget="2MiB", devices={"cpu": "2MiB"}
    ) as server:
        client = Client(server, "http")
        for model in (0, 1, 1, 2):
            client.infer(model, 1)
        client.close()
        lines = _request(server.metrics, "GET", "/metrics")[2].splitlines()
    for line in (
        'nv_memory_budget_bytes{device="all"} 2097152',
        'nv_memory_budget_bytes{device="cpu"} 2097152',
        'nv_memory_budget_used_bytes{device="cpu"} 2097152',
        "nv_lazy_hits 1",
        "nv_lazy_misses 3",
        "nv_lazy_loads 3",
        "nv_lazy_evictions 1",
        "nv_lazy_waiting_requests 0",
    ):
        assert any(each.startswith(line) for each in lines), line
    families = {line.split()[2] for line in lines if line.startswith("# TYPE nv_")}
    assert families <= SERVER_METRICS, "a model could make a family of that name"
    readme = (ROOT / "plugins" / "metrics_prometheus" / "README.md").read_text(encoding="utf-8")
    assert [name for name in sorted(families) if f"`{name}`" not in readme] == []


KILLED = """
import os
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        marker = os.path.join(args["model_repository"], "killed")
        if not os.path.exists(marker):
            open(marker, "w").close()
            os.kill(os.getpid(), 9)

    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", pb_utils.get_input_tensor_by_name(each, "IN").as_numpy())]) for each in requests]
"""


def test_killing_a_loading_process_fails_waiting_requests_and_the_next_request_loads_the_model(
    tmp_path: Path,
) -> None:
    repository = ModelRepository(tmp_path / "models")
    repository.add("m0", CONFIG.replace("weights", "python"), {1: {"model.py": KILLED}})
    frontends = {"http": {"port": 0}, "grpc": {"port": 0}, "metrics": False}
    memory = {"budget": "2GiB", "lazy": ["*"], "retry_s": 0.01}
    config = {
        "repositories": [{"url": str(repository.path)}],
        "frontends": frontends,
        "memory": memory,
    }
    with running_server(config) as server:
        client = Client(server, "http")
        with pytest.raises(tritonclient.http.InferenceServerException, match="could not be loaded"):
            client.infer(0, 1)
        assert memory_status(server)["held"]["all"] == 0
        assert _until_loaded(client) == 5
        assert memory_status(server)["held"]["cpu"] > SIZE, "what its process holds is measured"
        client.close()


def _until_loaded(client: Client) -> int:
    while True:
        try:
            return client.infer(0, 5)
        except tritonclient.http.InferenceServerException as error:
            if "could not be loaded" not in str(error):
                raise


def test_disconnects_during_a_load_leave_nothing_behind(
    model_repository: ModelRepository, meter: MemoryMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    load = LruPolicy._load
    monkeypatch.setattr(
        LruPolicy, "_load", lambda self, cold: (gate.wait(120), load(self, cold))[1]
    )
    with measured_server(model_repository, meter, 1, budget="1MiB") as server:
        connections = [http.client.HTTPConnection(server.http) for _ in range(20)]
        for connection in connections:
            connection.request("POST", "/v2/models/m0/infer", BODY)
        _wait_for(lambda: memory_status(server)["waiting_requests"] == 20)
        for connection in connections[:19]:
            connection.close()
        _wait_for(lambda: memory_status(server)["waiting_requests"] == 1)
        gate.set()
        response = connections[19].getresponse()
        assert response.status == 200
        assert json.loads(response.read())["outputs"][0]["data"] == [1]
        connections[19].close()


def _wait_for(condition: Any) -> None:
    pause = threading.Event()
    for _ in range(6000):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it never came true")


WEIGHTS_BYTES = 4 << 20
ONNX_CONFIG = """
input { name: "IN" data_type: TYPE_FP32 dims: 1 }
output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
"""


def onnx_model(number: int) -> bytes:
    """Return an ONNX model of 4 MiB that adds its number to IN: the mean of equal weights."""
    count = WEIGHTS_BYTES // 4
    weights = numpy_helper.from_array(np.full(count, number, np.float32), "W")
    nodes = [
        helper.make_node("ReduceMean", ["W"], ["MEAN"], keepdims=1),
        helper.make_node("Add", ["IN", "MEAN"], ["OUT"]),
    ]
    # Weights that are also an input are not folded into a constant at load time.
    given = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [size])
        for name, size in (("IN", 1), ("W", count))
    ]
    out = [helper.make_tensor_value_info("OUT", TensorProto.FLOAT, [1])]
    graph = helper.make_graph(nodes, "adds", given, out, [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def test_twelve_onnx_models_share_a_budget_for_four(model_repository: ModelRepository) -> None:
    for number in range(12):
        model_repository.add(f"m{number}", ONNX_CONFIG, {1: {"model.onnx": onnx_model(number)}})
    config = {
        "repositories": [{"url": str(model_repository.path)}],
        "frontends": {name: {"port": 0} for name in ("http", "grpc", "metrics")},
        "memory": {"lazy": ["*"], "budget": "17MiB"},
    }
    with running_server(config) as server:
        most = 0
        for number in [*range(12)] * 2:
            body = json.dumps(
                {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1], "data": [0.5]}]}
            )
            status, _, text = _request(server.http, "POST", f"/v2/models/m{number}/infer", body)
            assert (status, json.loads(text)["outputs"][0]["data"]) == (200, [number + 0.5]), text
            ready = json.loads(
                _request(server.http, "POST", "/v2/repository/index", '{"ready": true}')[2]
            )
            most = max(most, len(ready))
        assert 1 <= most <= 4
        metrics = _request(server.metrics, "GET", "/metrics")[2]
        evictions = re.findall(r"^nv_lazy_evictions\S* (\S+)$", metrics, re.MULTILINE)
        assert sum(map(float, evictions)) >= 20, metrics
