"""Instances: resource limits while processes die, updates with live sequences, and processor cores."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.test_failures import failed_start
from tritonpy import InferRequest, SequenceInfo, Tensor
from tritonpy_testing import ModelRepository, RecordingSink, RunningServer, running_server

MODEL = """
import json
import os
import time
import triton_python_backend_utils as pb_utils
import numpy as np


class TritonPythonModel:
    def initialize(self, args):
        self.name, self.total = args["model_instance_name"], 0
        self.diary = os.path.join(os.path.dirname(args["model_repository"]), "..", "diary")

    def execute(self, requests):
        responses = []
        for request in requests:
            begin = time.monotonic_ns()
            value = int(pb_utils.get_input_tensor_by_name(request, "IN").as_numpy().ravel()[0])
            if value == -9:
                os.kill(os.getpid(), 9)
            while value == -8 and not os.path.exists(self.diary + ".go"):
                time.sleep(0.001)
            time.sleep(0.003)
            self.total += value
            with open(self.diary, "a") as diary:
                diary.write(f"{begin} {time.monotonic_ns()} {self.name}\\n")
            cores = sorted({tuple(sorted(os.sched_getaffinity(int(each)))) for each in os.listdir("/proc/self/task")})
            said = json.dumps({"total": self.total, "pid": os.getpid(), "name": self.name, "cores": cores})
            out = np.array([[said]] if CONFIG_BATCHES else [said], dtype=object)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", out)]))
        return responses
"""
CONFIG = """
backend: "python"
max_batch_size: %d
input { name: "IN" data_type: TYPE_INT32 dims: 1 }
output { name: "OUT" data_type: TYPE_STRING dims: 1 }
%s
"""
NEEDS_R = 'instance_group { count: %d kind: KIND_CPU rate_limiter { resources { name: "R" count: 1 } priority: %d } }'
CORE = min(os.sched_getaffinity(0))


class InstanceClient:
    """Sends requests to the models of a server; all share one recording sink."""

    def __init__(self, server: RunningServer) -> None:
        self.engine = server.engine
        self.recorder = RecordingSink()

    def infer(
        self, model: str, value: int = 1, batched: bool = False, **fields: Any
    ) -> InferRequest:
        array = np.array([[value]] if batched else [value], np.int32)
        request = InferRequest(
            model, {"IN": Tensor.from_numpy("IN", array)}, self.recorder.sink, **fields
        )
        self.engine.infer(request)
        return request

    def result(self, request: InferRequest) -> dict[str, Any]:
        ((response,),) = self.recorder.wait(request)
        if response.error is not None:
            raise response.error
        state: dict[str, Any] = json.loads(response.outputs[0].numpy().ravel()[0])
        return state

    def sequence(
        self, number: int, value: int, start: bool = False, end: bool = False
    ) -> dict[str, Any]:
        request = self.infer("m", value, batched=True, sequence=SequenceInfo(number, start, end))
        return self.result(request)


def add(repository: ModelRepository, name: str, more: str, batch: int = 0) -> None:
    source = MODEL.replace("CONFIG_BATCHES", str(batch > 0))
    repository.add(name, CONFIG % (batch, more), versions={1: {"model.py": source}})


def configure(repository: ModelRepository, name: str, more: str, batch: int = 0) -> None:
    """Write only the configuration; serving models are not reloaded."""
    repository.add(name, CONFIG % (batch, more), versions={})


@contextmanager
def serving(repository: ModelRepository, **settings: Any) -> Iterator[InstanceClient]:
    silent = {"http": False, "grpc": False, "metrics": False}
    settings = {"control": {"mode": "explicit", "load": ["*"]}, "frontends": silent} | settings
    with running_server({"repositories": [{"url": str(repository.path)}], **settings}) as server:
        yield InstanceClient(server)


def executions(repository: ModelRepository) -> list[tuple[int, int, str]]:
    """Return begin and end of each completed execution, by the machine's clock, and its model."""
    lines = (repository.path.parent / "diary").read_text().splitlines()
    return sorted(
        (int(begin), int(end), name) for begin, end, name in (line.split() for line in lines)
    )


@pytest.fixture
def repository(tmp_path: Path) -> ModelRepository:
    return ModelRepository(tmp_path / "models")


def test_models_with_a_shared_resource_never_overlap_when_a_holder_is_killed(
    repository: ModelRepository,
) -> None:
    add(repository, "a", NEEDS_R % (2, 1))
    add(repository, "b", NEEDS_R % (1, 2))
    with serving(repository, rate_limit={"mode": "execution_count"}) as client:
        requests = [client.infer(name) for _ in range(8) for name in ("a", "b")]
        dying = client.infer("a", -9)
        requests += [client.infer(name) for _ in range(8) for name in ("a", "b")]
        ((died,),) = client.recorder.wait(dying)
        assert died.error is not None
        assert "SIGKILL" in died.error.message
        for request in requests:
            client.result(request)
        client.recorder.check(dying, *requests)
    done = executions(repository)
    assert len(done) == len(requests)
    assert all(end <= begin for (_, end, _), (begin, _, _) in pairwise(done))


def test_resource_grants_follow_model_priorities(repository: ModelRepository) -> None:
    add(repository, "often", NEEDS_R % (1, 1))
    add(repository, "seldom", NEEDS_R % (1, 3))
    with serving(repository, rate_limit={"mode": "execution_count"}) as client:
        holding = client.infer("often", -8)  # until all requests are queued
        requests = [client.infer(name) for name in ("often", "seldom") for _ in range(60)]
        (repository.path.parent / "diary.go").touch()
        for request in [holding, *requests]:
            client.result(request)
    names = [name.rpartition("_")[0] for _, _, name in executions(repository)]
    last = max(number for number, name in enumerate(names) if name.startswith("often"))
    share = sum(name.startswith("seldom") for name in names[: last + 1])
    assert abs(share - 20) <= 3


def test_live_sequences_finish_on_removed_instances(repository: ModelRepository) -> None:
    sequences = "sequence_batching { max_sequence_idle_microseconds: 60000000 } instance_group { count: 2 kind: KIND_CPU %s }"
    add(repository, "m", sequences % "", batch=1)
    with serving(repository) as client:
        before = {number: client.sequence(number, 10 * number, start=True) for number in (1, 2)}
        assert len({state["pid"] for state in before.values()}) == 2
        configure(repository, "m", sequences % 'host_policy: "other"', batch=1)
        client.engine.load_model("m")
        fresh = client.sequence(3, 5, start=True)
        assert fresh["total"] == 5
        assert fresh["pid"] not in {state["pid"] for state in before.values()}
        for number in (1, 2):
            state = client.sequence(number, 1)
            assert (state["pid"], state["total"]) == (before[number]["pid"], 10 * number + 1)
            assert client.sequence(number, 1, end=True)["total"] == 10 * number + 2
        for state in before.values():
            _wait_for_end(state["pid"])
        assert client.sequence(3, 1, end=True)["pid"] == fresh["pid"]
        assert client.sequence(1, 7, start=True, end=True)["pid"] not in {
            state["pid"] for state in before.values()
        }


@pytest.mark.parametrize("count", [1, 2], ids=["the template itself", "forked"])
def test_python_models_run_on_the_configured_cores(repository: ModelRepository, count: int) -> None:
    add(
        repository,
        "bound",
        f'instance_group {{ count: {count} kind: KIND_CPU host_policy: "one" }}',
    )
    add(repository, "free", f"instance_group {{ count: {count} kind: KIND_MODEL }}")
    with serving(repository, host_policies={"one": {"cpu_cores": f"{CORE}-{CORE}"}}) as client:
        assert all(client.result(client.infer("bound"))["cores"] == [[CORE]] for _ in range(4))
        assert client.result(client.infer("free"))["cores"] == [sorted(os.sched_getaffinity(0))]


def test_an_added_instance_runs_on_the_configured_cores(repository: ModelRepository) -> None:
    groups = "instance_group { count: %d kind: KIND_CPU }"
    add(repository, "m", groups % 1)
    with serving(repository, host_policies={"cpu": {"cpu_cores": str(CORE)}}) as client:
        configure(repository, "m", groups % 3)
        client.engine.load_model("m")
        found = [client.result(request) for request in [client.infer("m") for _ in range(12)]]
        assert len({state["pid"] for state in found}) > 1
        assert all(state["cores"] == [[CORE]] for state in found)


def test_missing_cores_are_a_startup_error(serve: Any, repository: ModelRepository) -> None:
    printed = failed_start(
        serve, f"--model-repository={repository.path}", "--host-policy=cpu,cpu-cores=1000-1001"
    )
    assert "--host-policy: this process may run on cores " in printed
    assert "which do not include 1000-1001" in printed


def _wait_for_end(pid: int) -> None:
    """Wait until the process ends. Raises AssertionError if it does not."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    poll = select.poll()
    poll.register(process, select.POLLIN)
    try:
        assert poll.poll(10_000), f"process {pid} stays"
    finally:
        os.close(process)
