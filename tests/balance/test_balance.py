"""Several servers behind Envoy: protocols, faults, placement, sequences, and changes."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.utils

from tests.balance.conftest import (
    SEQUENCE,
    SEQUENCE_CONFIG,
    backend_of,
    kill,
    wait_for_servers,
    wait_until,
)
from tests.conftest import ROOT, TIMEOUT_S

ADD_SUB = {
    "inputs": [
        {"name": name, "datatype": "INT32", "shape": [1, 16], "data": [4] * 16}
        for name in ("INPUT0", "INPUT1")
    ]
}


def grpc_inputs(value: int = 4) -> list[Any]:
    inputs = []
    for name in ("INPUT0", "INPUT1"):
        tensor = tritonclient.grpc.InferInput(name, [1, 16], "INT32")
        tensor.set_data_from_numpy(np.full((1, 16), value, np.int32))
        inputs.append(tensor)
    return inputs


class Load:
    """Threads that send inference over HTTP or gRPC and count what comes back."""

    def __init__(self, port: int, protocol: str, threads: int = 4) -> None:
        self.results: collections.Counter[Any] = collections.Counter()
        self.slowest_s = 0.0
        self._port = port
        self._stopping = threading.Event()
        run = self._run_http if protocol == "http" else self._run_grpc
        self._threads = [threading.Thread(target=run) for _ in range(threads)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    @property
    def count(self) -> int:
        return sum(self.results.values())

    def _run_http(self) -> None:
        with httpx.Client(timeout=TIMEOUT_S) as client:
            while not self._stopping.is_set():
                url = f"http://127.0.0.1:{self._port}/v2/models/add_sub/infer"
                started = time.monotonic()
                response = client.post(url, json=ADD_SUB)
                self.slowest_s = max(self.slowest_s, time.monotonic() - started)
                good = response.status_code == 200
                good = good and response.json()["outputs"][0]["data"] == [8] * 16
                self.results["ok" if good else (response.status_code, response.text[:200])] += 1

    def _run_grpc(self) -> None:
        with tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{self._port}") as client:
            while not self._stopping.is_set():
                started = time.monotonic()
                try:
                    found = client.infer("add_sub", grpc_inputs()).as_numpy("OUTPUT0")
                    self.slowest_s = max(self.slowest_s, time.monotonic() - started)
                    self.results["ok" if (found == 8).all() else "wrong"] += 1
                except tritonclient.utils.InferenceServerException as error:
                    self.results[str(error)] += 1


def test_one_port_speaks_all_protocols(cluster: Any, balance: Any, tmp_path: Path) -> None:
    cluster.add()
    log = tmp_path / "access.log"
    with balance(cluster.backends(), access_log=str(log)) as balancer:
        url = f"http://127.0.0.1:{balancer.port}"
        for is_http2 in (False, True):
            with httpx.Client(http1=not is_http2, http2=is_http2) as client:
                response = client.post(f"{url}/v2/models/add_sub/infer", json=ADD_SUB)
                assert response.json()["outputs"][0]["data"] == [8] * 16
        answers: concurrent.futures.Future[Any] = concurrent.futures.Future()
        with tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{balancer.port}") as grpc:
            assert grpc.is_server_ready()
            assert grpc.get_model_metadata("digits").name == "digits"
            grpc.start_stream(lambda result, error: answers.set_result((result, error)))
            grpc.async_stream_infer("add_sub", grpc_inputs())
            result, error = answers.result(TIMEOUT_S)
            grpc.stop_stream()
            assert error is None
            assert result.as_numpy("OUTPUT0")[0, 0] == 8
            with pytest.raises(tritonclient.utils.InferenceServerException) as refused:
                grpc.unload_model("digits")
            assert "passes on no calls that change a server" in str(refused.value)
        response = httpx.post(f"{url}/v2/repository/models/digits/unload")
        assert (response.status_code, "--management" in response.text) == (403, True)
        assert {each["name"] for each in httpx.post(f"{url}/v2/repository/index").json()} == {
            "add_sub", "digits",
        }  # fmt: skip
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    infer = [line for line in lines if line["path"] == "/v2/models/add_sub/infer"]
    assert [line["protocol"] for line in infer] == ["HTTP/1.1", "HTTP/2"]
    assert {line["status"] for line in infer} == {200}
    assert {line["attempts"] for line in infer} == {1}


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_killed_server_loses_no_inference(cluster: Any, balance: Any, protocol: str) -> None:
    first, _ = cluster.add(), cluster.add()
    with balance(cluster.backends()) as balancer:
        with Load(balancer.port, protocol) as load:
            wait_until(lambda: load.count > 300, "load", balancer)
            kill(first)
            seen = load.count
            wait_until(lambda: load.count > seen + 1000, "load after the kill", balancer)
            restarted = cluster.restart(first)
            wait_for_servers(balancer)
            seen = load.count
            wait_until(lambda: load.count > seen + 300, "load after the restart", balancer)
        assert set(load.results) == {"ok"}, load.results
        assert restarted.request("/v2/models/add_sub/stats").json()["model_stats"][0][
            "inference_count"
        ]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_stopped_server_drains_without_a_lost_call(
    cluster: Any, balance: Any, protocol: str
) -> None:
    first, _ = cluster.add(), cluster.add()
    with balance(cluster.backends()) as balancer:
        with Load(balancer.port, protocol) as load:
            wait_until(lambda: load.count > 300, "load", balancer)
            first.process.send_signal(signal.SIGTERM)
            first.wait_until_exit()
            seen = load.count
            wait_until(lambda: load.count > seen + 300, "load after the stop", balancer)
        assert set(load.results) == {"ok"}, load.results


def test_a_balancer_that_stops_finishes_calls_in_flight(
    cluster: Any, balance: Any, tmp_path: Path
) -> None:
    gate = tmp_path / "open"
    cluster._models.toy(
        "gate", more=f'parameters {{ key: "gate" value {{ string_value: "{gate}" }} }}'
    )
    cluster.add()
    body = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 1], "data": [7]}]}
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        with balance(cluster.backends(), drain_s=float(TIMEOUT_S)) as balancer:
            url = f"http://127.0.0.1:{balancer.port}/v2/models/gate/infer"
            call = threads.submit(httpx.post, url, json=body, timeout=TIMEOUT_S)
            wait_until(gate.with_suffix(".entered").exists, "the call is executed", balancer)

            def draining() -> bool:
                with contextlib.suppress(httpx.HTTPError):
                    return "DRAINING" in balancer.envoy._admin("GET", "/server_info")
                return False

            def open_gate() -> None:
                wait_until(draining, "the balancer drains", balancer)
                gate.touch()

            opener = threading.Thread(target=open_gate)
            opener.start()
        opener.join()
        assert call.result(TIMEOUT_S).json()["outputs"][0]["data"] == [7.0]


def test_calls_of_a_model_go_to_servers_that_have_it(cluster: Any, balance: Any) -> None:
    explicit = ("--model-control-mode=explicit", "--load-model=digits")
    both, one = cluster.add(*explicit, "--load-model=add_sub"), cluster.add(*explicit)
    with balance(cluster.backends()) as balancer:
        url = f"http://127.0.0.1:{balancer.port}/v2/models/add_sub/infer"
        with tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{balancer.port}") as grpc:
            for _ in range(10):
                assert httpx.post(url, json=ADD_SUB).status_code == 200
                assert grpc.infer("add_sub", grpc_inputs()).as_numpy("OUTPUT0")[0, 0] == 8
        count = both.request("/v2/models/add_sub/stats").json()["model_stats"][0]["inference_count"]
        assert count == 20
        # the model moves to the other server
        assert one.request("/v2/repository/models/add_sub/load", b"").status == 200
        assert both.request("/v2/repository/models/add_sub/unload", b"").status == 200
        balancer.refresh()
        statuses = {httpx.post(url, json=ADD_SUB).status_code for _ in range(10)}
        assert statuses == {200}


def sequence(client: Any, number: int, values: list[int], headers: dict[str, str]) -> list[Any]:
    """Return the results of a sequence, or the error that ended it."""
    results: list[Any] = []
    for at, value in enumerate(values):
        tensor = tritonclient.grpc.InferInput("IN", [1, 1], "INT64")
        tensor.set_data_from_numpy(np.array([[value]], np.int64))
        try:
            found = client.infer(
                "folding", [tensor], sequence_id=number, sequence_start=at == 0, headers=headers
            )
        except tritonclient.utils.InferenceServerException as error:
            return [*results, str(error)]
        results.append(int(found.as_numpy("OUT")[0, 0]))
    return results


@pytest.mark.parametrize("named", [True, False])
def test_sequences_stay_on_their_server_and_are_refused_when_it_is_lost(
    cluster: Any, balance: Any, named: bool
) -> None:
    cluster._models.repository.add("folding", SEQUENCE_CONFIG, {1: {"model.py": SEQUENCE}})
    servers = [cluster.add(), cluster.add()]
    values = [2, 5, 7, 1]
    expected = [2, 11, 40, 121]
    with (
        balance(cluster.backends()) as balancer,
        tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{balancer.port}") as client,
    ):

        def headers(number: int) -> dict[str, str]:
            return {"x-sequence-id": str(number)} if named else {}

        for number in range(1, 21):
            assert sequence(client, number, values, headers(number)) == expected
        used = [
            server for server in servers
            if server.request("/v2/models/folding/stats").json()["model_stats"][0]["inference_count"]
        ]  # fmt: skip
        assert len(used) == (2 if named else 1)
        # begun on a server that is then killed: refused, never answered with another state
        assert sequence(client, 99, values[:2], headers(99)) == expected[:2]
        for server in used[:1] if not named else servers:
            kill(server)
            if named:
                cluster.restart(server)
        wait_for_servers(balancer, 2 if named else 1)
        tensor = tritonclient.grpc.InferInput("IN", [1, 1], "INT64")
        tensor.set_data_from_numpy(np.array([[7]], np.int64))
        with pytest.raises(tritonclient.utils.InferenceServerException, match="START"):
            client.infer("folding", [tensor], sequence_id=99, headers=headers(99))


def test_servers_come_and_go_with_the_file(cluster: Any, balance: Any, tmp_path: Path) -> None:
    file = tmp_path / "servers"
    first, second = cluster.add(), cluster.add()
    file.write_text(backend_of(first))
    with balance(file=str(file)) as balancer:
        with Load(balancer.port, "http") as load:
            wait_until(lambda: load.count > 100, "load", balancer)
            file.write_text(f"{backend_of(first)}\n{backend_of(second)}")
            balancer.refresh()
            wait_for_servers(balancer, 2)
            file.write_text(backend_of(second))
            balancer.refresh()
            wait_for_servers(balancer, 1)
            kill(first)
            seen = load.count
            wait_until(lambda: load.count > seen + 100, "load", balancer)
        assert set(load.results) == {"ok"}, load.results


def test_weights_follow_the_load_that_servers_report(cluster: Any, balance: Any) -> None:
    model = """
import time
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        time.sleep(DELAY)
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("OUT", each.inputs()[0].as_numpy())])
            for each in requests
        ]
"""
    config = """
    backend: "python" max_batch_size: 1
    input { name: "IN" data_type: TYPE_FP32 dims: 1 }
    output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
    instance_group { count: 4 }
    """
    reports = cluster._models.path.parent / "server.yaml"
    reports.write_text("frontends: {http: {load_reports: {always: true}}}")
    servers = []
    for number, delay in enumerate((0.004, 0.016)):
        folder = cluster._models.path.parent / f"models{number}" / "slow"
        (folder / "1").mkdir(parents=True)
        (folder / "1" / "model.py").write_text(model.replace("DELAY", str(delay)))
        (folder / "config.pbtxt").write_text(config)
        cluster._models.path = folder.parent
        servers.append(cluster.add(f"--config={reports}"))
    body = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}
    with balance(cluster.backends(), policy="load") as balancer:
        url = f"http://127.0.0.1:{balancer.port}/v2/models/slow/infer"

        def counts() -> list[int]:
            found = [server.request("/v2/models/slow/stats").json() for server in servers]
            return [each["model_stats"][0]["inference_count"] for each in found]

        def send() -> None:
            with httpx.Client(timeout=TIMEOUT_S) as client:
                while not done.is_set():
                    assert client.post(url, json=body).status_code == 200

        done = threading.Event()
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            for _ in range(4):
                threads.submit(send)

            def follows() -> bool:
                before = counts()
                wait_until(lambda: sum(counts()) > sum(before) + 200, "load", balancer)
                fast, slow = (now - then for now, then in zip(counts(), before, strict=True))
                return fast > 2 * slow

            try:
                wait_until(follows, "the fast server has more than twice the calls", balancer)
            finally:
                done.set()


def test_the_command_serves_metrics_and_ends_cleanly(
    cluster: Any, free_ports: Any, tmp_path: Path
) -> None:
    cluster.add()
    port, metrics = free_ports(2)
    command = [
        sys.executable, "-m", "tritonpy", "balance", "--backends", cluster.backends()[0],
        "--port", str(port), "--metrics-port", str(metrics), "--drain", "2",
    ]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    try:

        def ready() -> bool:
            with contextlib.suppress(httpx.HTTPError):
                url = f"http://127.0.0.1:{port}/v2/health/ready"
                return httpx.get(url).status_code == 200
            return False

        wait_until(ready, "the balancer is ready")
        assert "envoy_cluster_upstream_rq" in httpx.get(f"http://127.0.0.1:{metrics}/metrics").text
        assert httpx.get(f"http://127.0.0.1:{metrics}/quitquitquit").status_code == 404
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, errors
    assert "is ready" in errors
    assert children
    assert not any(os.path.exists(f"/proc/{child}") for child in children)


def test_a_port_that_is_taken_is_named(cluster: Any, balance: Any) -> None:
    from tritonpy import StartupError
    from tritonpy_balance.balancer import Balancer
    from tritonpy_balance.options import BalanceOptions

    server = cluster.add()
    options = BalanceOptions(backends=cluster.backends(), port=server.ports["http"])
    expected = r"(?s)Envoy does not start:.*Address already in use"
    with pytest.raises(StartupError, match=expected), Balancer(options):
        pass
