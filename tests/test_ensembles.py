"""Ensembles whose members unload, die or restart, and whose clients disconnect, during a request."""

from __future__ import annotations

import csv
import itertools
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tests.cancellation import CancellationServer, cancellation_server
from tests.conftest import Models, Serve, ServerProcess

PERF_ANALYZER = os.environ.get("TRITONPY_PERF_ANALYZER", "")
WAYS = ("http", "pipelining", "grpc", "deadline", "stream", "stream_deadline")
MEMBER = """
import json, os, time
from pathlib import Path
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.name = args["model_name"]
        self.folder = Path(json.loads(args["model_config"])["parameters"]["folder"]["string_value"])
        (self.folder / f"{self.name}.pid").write_text(str(os.getpid()))

    def record(self, what, name):
        with (self.folder / "events").open("a") as events:
            events.write(f"{what} {name}\\n")

    def execute(self, requests):
        return [self.respond(request) for request in requests]

    def respond(self, request):
        name = f"{self.name}.{request.request_id()}"
        given = request.inputs()[0].as_numpy()
        if request.request_id().startswith("held"):
            self.record("begin", name)
            while not request.is_cancelled() and not (self.folder / name).exists():
                time.sleep(0.001)
            if request.is_cancelled():
                self.record("cancelled", name)
                return pb_utils.InferenceResponse(error=pb_utils.TritonError("stopped", pb_utils.TritonError.CANCELLED))
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", given + 1)])
"""
TENSORS = """
    input { name: "IN" data_type: TYPE_INT32 dims: 1 }
    output { name: "OUT" data_type: TYPE_INT32 dims: 1 }
"""
BOTH = f"""
    platform: "ensemble" {TENSORS}
    ensemble_scheduling {{
      step {{ model_name: "first" model_version: -1 input_map {{ key: "IN" value: "IN" }} output_map {{ key: "OUT" value: "MID" }} }}
      step {{ model_name: "second" model_version: -1 input_map {{ key: "IN" value: "MID" }} output_map {{ key: "OUT" value: "OUT" }} }}
    }}
"""
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("progress")


@pytest.fixture(scope="module")
def running(
    serve: Serve, tmp_path_factory: pytest.TempPathFactory, folder: Path
) -> Iterator[CancellationServer]:
    models = Models(tmp_path_factory.mktemp("ensembles") / "models")
    for name in ("first", "second"):
        more = f'parameters {{ key: "folder" value {{ string_value: "{folder}" }} }}'
        models.repository.add(
            name, f'backend: "python" {TENSORS} {more}', {1: {"model.py": MEMBER}}
        )
    models.repository.add("both", BOTH)
    flags = (
        "--exit-timeout-secs=2",
        "--metrics-interval-ms=50",
        "--model-control-mode=explicit",
        "--load-model=*",
    )
    with (
        serve(f"--model-repository={models.path}", *flags) as served,
        cancellation_server(served, folder) as made,
    ):
        yield made


@pytest.fixture
def name() -> str:
    return f"held{next(_numbers)}"


def change(served: ServerProcess, what: str, model: str) -> None:
    assert served.request(f"/v2/repository/models/{model}/{what}", "{}").status == 200


def kill(served: ServerProcess, folder: Path, model: str) -> None:
    """Kill the worker of a model and wait until its replacement runs."""
    file = folder / f"{model}.pid"
    pid = file.read_text()
    os.kill(int(pid), signal.SIGKILL)
    served.wait(lambda: file.read_text() not in {"", pid}, f"{model} has a new worker")
    served.wait(
        lambda: served.request(f"/v2/models/{model}/ready").status == 200, f"{model} is ready again"
    )


def served_once_more(running: CancellationServer) -> bool:
    response = running.infer("both", f"quick{next(_numbers)}")
    return response.code() is grpc.StatusCode.OK


def total(running: CancellationServer, model: str) -> int:
    """Return the number of completed requests of a model, failed ones included."""
    (found,) = json.loads(running.served.request(f"/v2/models/{model}/stats").body)["model_stats"]
    return sum(found["inference_stats"][kind]["count"] for kind in ("success", "fail"))


@pytest.mark.parametrize("way", WAYS)
def test_a_disconnect_cancels_the_running_step_and_later_steps(
    running: CancellationServer, name: str, way: str
) -> None:
    failed = running.failures("both").get("CANCELED", 0)
    disconnect = running.start_request(way, "both", name)
    running.wait_for_event(f"begin first.{name}")
    disconnect()
    running.wait_for_event(f"cancelled first.{name}")
    running.wait_until_failed("both", **{**running.failures("both"), "CANCELED": failed + 1})
    assert running.events(f"first.{name}", f"second.{name}") == [
        f"begin first.{name}",
        f"cancelled first.{name}",
    ]
    assert served_once_more(running)


def test_a_disconnect_frees_the_place_in_a_member_queue(
    running: CancellationServer, name: str
) -> None:
    failed = running.failures("both").get("CANCELED", 0)
    busy = running.infer("first", name)
    running.wait_for_event(f"begin first.{name}")
    disconnect = running.start_request("grpc", "both", f"{name}x")
    running.wait_until_queued("first", 1)
    disconnect()
    running.wait_until_queued("first", 0)
    running.wait_until_failed("both", **{**running.failures("both"), "CANCELED": failed + 1})
    running.finish(f"first.{name}")
    assert busy.code() is grpc.StatusCode.OK
    assert running.events(f"first.{name}x") == []


@pytest.mark.parametrize("model", ["first", "second"])
def test_a_killed_worker_fails_its_requests_and_the_error_names_the_step(
    running: CancellationServer, folder: Path, name: str, model: str
) -> None:
    response = running.infer("both", name)
    if model == "second":
        running.finish(f"first.{name}")
    running.wait_for_event(f"begin {model}.{name}")
    kill(running.served, folder, model)
    assert response.code() is grpc.StatusCode.INTERNAL
    text = response.details()
    assert text.startswith(f"in ensemble 'both', Stub process '{model}_0' is not healthy")
    assert text.endswith(
        "(step 0, model 'first': 'MID' from 'IN')"
        if model == "first"
        else "(step 1, model 'second': 'OUT' from 'MID')"
    )
    assert served_once_more(running)


def test_a_request_finishes_while_its_members_are_unloaded(
    running: CancellationServer, name: str
) -> None:
    response = running.infer("both", name)
    running.wait_for_event(f"begin first.{name}")
    change(running.served, "unload", "second")
    refused = running.infer("both", f"{name}x")
    assert refused.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.NOT_FOUND}
    running.finish(f"first.{name}")
    running.finish(f"second.{name}")
    assert response.code() is grpc.StatusCode.OK
    change(running.served, "load", "second")
    running.served.wait(lambda: served_once_more(running), "the ensemble serves again")


def test_every_request_gets_one_response_while_workers_die(
    running: CancellationServer, folder: Path
) -> None:
    before = total(running, "both")
    responses = []
    for model in ("first", "second", "first"):
        responses += [running.infer("both", f"quick{next(_numbers)}") for _ in range(40)]
        kill(running.served, folder, model)
    codes = [response.code() for response in responses]
    assert set(codes) <= {grpc.StatusCode.OK, grpc.StatusCode.INTERNAL}
    assert all(
        "step " in response.details()
        for response in responses
        if response.code() is grpc.StatusCode.INTERNAL
    )
    assert served_once_more(running)
    assert total(running, "both") == before + len(responses) + 1


def test_reloading_a_member_fails_no_request(running: CancellationServer, folder: Path) -> None:
    responses = []
    for number in range(3):
        responses += [running.infer("both", f"quick{next(_numbers)}") for _ in range(20)]
        config = (
            f'{{"parameters": {{"config": {json.dumps(json.dumps(_config(folder, number)))}}}}}'
        )
        assert running.served.request("/v2/repository/models/second/load", config).status == 200
    assert [response.code() for response in responses] == [grpc.StatusCode.OK] * len(responses)


def _config(folder: Path, number: int) -> dict[str, object]:
    """Return the configuration of a member, a different one for each number."""
    return {
        "name": "second",
        "backend": "python",
        "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [1]}],
        "output": [{"name": "OUT", "data_type": "TYPE_INT32", "dims": [1]}],
        "parameters": {
            "folder": {"string_value": str(folder)},
            "number": {"string_value": str(number)},
        },
    }


@pytest.mark.skipif(
    not PERF_ANALYZER, reason="needs the real perf_analyzer: set TRITONPY_PERF_ANALYZER to its path"
)
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_real_perf_analyzer_measures_an_ensemble_and_its_members(
    running: CancellationServer, tmp_path: Path, protocol: str
) -> None:
    report = tmp_path / "report.csv"
    done = subprocess.run(
        [
            PERF_ANALYZER, "-m", "both", "-i", protocol, "-u", getattr(running.served, protocol), "-f", str(report),
            "--concurrency-range=4", "--measurement-mode=count_windows", "--measurement-request-count=50",
            "--max-trials=5", "--stability-percentage=999",
        ],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "error" not in (done.stdout + done.stderr).lower()
    composing = re.findall(r"^\s*(\w+), version: 1\W", done.stdout, re.MULTILINE)
    assert {"first", "second"} <= set(composing), done.stdout
    with report.open(newline="") as file:
        assert float(next(csv.DictReader(file))["Inferences/Second"]) > 0


def test_a_draining_server_finishes_its_ensembles(serve: Serve, tmp_path: Path) -> None:
    models = Models(tmp_path / "models")
    more = f'parameters {{ key: "folder" value {{ string_value: "{tmp_path}" }} }}'
    for each in ("first", "second"):
        models.repository.add(
            each, f'backend: "python" {TENSORS} {more}', {1: {"model.py": MEMBER}}
        )
    models.repository.add("both", BOTH)
    with (
        serve(f"--model-repository={models.path}") as served,
        cancellation_server(served, tmp_path) as running,
    ):
        response = running.infer("both", "held")
        running.wait_for_event("begin first.held")
        served.process.send_signal(signal.SIGTERM)
        served.wait_until_logged("(?i)signal|exiting|drain|stopping")
        running.finish("first.held")
        running.finish("second.held")
        assert response.code() is grpc.StatusCode.OK
        assert served.wait_until_exit() == 0
