"""Frontend processes over time: ports, reloads, deaths and drains under load."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import tritonclient.grpc
import tritonclient.http

from tests.conftest import Models, Serve, ServerProcess
from tests.multi_process_server import (
    FLAGS,
    ONE,
    Load,
    add_models,
    connections,
    listener_count,
    metrics,
    pending,
    processes,
    read_count,
    request_path,
    slow_stream,
)


@pytest.fixture(scope="module")
def progress_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("progress") / "count"


@pytest.fixture(scope="module")
def multi_process(
    serve: Serve, tmp_path_factory: pytest.TempPathFactory, progress_file: Path
) -> Iterator[ServerProcess]:
    models = Models(tmp_path_factory.mktemp("fleet") / "models")
    add_models(models, progress_file)
    flags = (
        "--model-control-mode=explicit",
        "--load-model=*",
        "--allow-client-shm=true",
        "--metrics-interval-ms=50",
    )
    with serve(f"--model-repository={models.path}", *FLAGS, *flags) as served:
        yield served


def test_a_reload_under_load_fails_no_request(multi_process: ServerProcess) -> None:
    with Load(multi_process) as load:
        for _ in range(5):
            load.wait_for_responses(20)
            assert multi_process.request("/v2/repository/models/identity/load", "{}").status == 200
        load.wait_for_responses()
    assert load.failures == []
    assert load.lost == 0


def test_a_killed_process_is_restarted_and_only_its_clients_are_disconnected(
    multi_process: ServerProcess,
) -> None:
    with Load(multi_process) as load:
        load.wait_for_responses()
        first, other = processes(multi_process)
        first.kill()
        multi_process.wait(
            lambda: first.pid not in [each.pid for each in processes(multi_process)], "it is gone"
        )
        load.wait_for_responses()
        multi_process.wait(lambda: listener_count(multi_process) == 2, "another one accepts")
        assert other.pid in [each.pid for each in processes(multi_process)]
        load.wait_for_responses()
    assert load.failures == []
    multi_process.wait_until_logged("frontend process [01] died: it was killed by signal 9")
    multi_process.wait_until_logged("frontend process [01] restarted")
    multi_process.wait(lambda: pending(multi_process, "identity") == 0, "no request of it is left")


def test_the_stream_of_a_killed_process_is_cancelled(
    multi_process: ServerProcess, progress_file: Path
) -> None:
    ended = Path(f"{progress_file}.ended")
    for path in (progress_file, ended):
        path.unlink(missing_ok=True)
    with slow_stream(multi_process):
        multi_process.wait(
            lambda: progress_file.exists() and read_count(progress_file) > 10, "the model answers"
        )
        for process in processes(multi_process):
            process.kill()
        multi_process.wait(ended.exists, "the model detects the disconnect")
    multi_process.wait(lambda: listener_count(multi_process) == 2, "others accept")


@pytest.mark.parametrize("frontend", ["http", "grpc"])
def test_a_port_in_use_is_the_same_error_as_with_one_process(
    serve: Serve, models: Models, free_ports: Callable[[int], list[int]], frontend: str
) -> None:
    models.identity("identity", "FP32", ["rows"])
    (port,) = free_ports(1)
    error_lines = []
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        for flags in (FLAGS, FLAGS[:1]):
            with serve(
                f"--model-repository={models.path}", f"--{frontend}-port={port}", *flags, until=None
            ) as served:
                assert served.wait_until_exit() == 1
                error_lines.append(
                    [line for line in served.log.splitlines() if f":{port}" in line][-1]
                )
    assert error_lines[0] == error_lines[1]


def test_two_servers_do_not_share_a_port_by_accident(serve: Serve, models: Models) -> None:
    models.identity("identity", "FP32", ["rows"])
    with serve(f"--model-repository={models.path}", *FLAGS) as first:
        flags = (f"--http-port={first.ports['http']}", *FLAGS)
        with serve(f"--model-repository={models.path}", *flags, until=None) as second:
            assert second.wait_until_exit() == 1
            assert "Address already in use" in second.log


@pytest.fixture
def gated(serve: Serve, models: Models, tmp_path: Path) -> Iterator[tuple[ServerProcess, Path]]:
    gate = tmp_path / "open"
    models.toy("gate", more=f'parameters {{ key: "gate" value {{ string_value: "{gate}" }} }}')
    with serve(f"--model-repository={models.path}", *FLAGS) as served:
        yield served, gate


def test_live_requests_finish_and_every_process_ends_with_the_server(
    gated: tuple[ServerProcess, Path],
) -> None:
    served, gate = gated
    responses: list[Any] = []
    thread = threading.Thread(
        target=lambda: responses.append(served.request("/v2/models/gate/infer", ONE))
    )
    thread.start()
    served.wait(gate.with_suffix(".entered").exists, "the request is being executed")
    left = processes(served)
    served.process.send_signal(signal.SIGTERM)
    served.wait_until_logged("Signal")
    for process in left:
        process.send_signal(
            signal.SIGTERM
        )  # as a service manager does; the server must decide how its processes end
    gate.touch()
    thread.join()
    assert [response.status for response in responses] == [200]
    assert served.wait_until_exit() == 0
    assert not any(process.is_running() for process in left)


def test_all_processes_end_when_the_engine_dies(gated: tuple[ServerProcess, Path]) -> None:
    served, _ = gated
    left = psutil.Process(served.process.pid).children(recursive=True)
    served.process.kill()
    served.process.wait()
    gone, alive = psutil.wait_procs(left, 60)
    assert not alive
    assert len(gone) >= 2


def test_a_unix_domain_socket_serves_both_protocols(
    serve: Serve, models: Models, tmp_path: Path
) -> None:
    models.identity("identity", "FP32", ["rows", "columns"])
    paths = [tmp_path / name for name in ("h.sock", "g.sock")]
    flags = [f"--http-address=unix:{paths[0]}", f"--grpc-address=unix:{paths[1]}"]
    with serve(f"--model-repository={models.path}", *FLAGS, *flags) as served:
        for _ in range(8):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(paths[0]))
                client.sendall(b"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n")
                assert client.recv(4096).startswith(b"HTTP/1.1 200")
        with tritonclient.grpc.InferenceServerClient(f"unix:{paths[1]}") as client:
            assert client.is_server_ready()
        served.process.terminate()
        assert served.wait_until_exit() == 0
    assert not any(path.exists() for path in paths)


def test_traces_have_frontend_timestamps_and_follow_the_trace_count(
    serve: Serve, models: Models, tmp_path: Path
) -> None:
    models.identity("identity", "FP32", ["rows", "columns"])
    file = tmp_path / "trace.json.0"
    tracing = ("level=TIMESTAMPS", "rate=4", "count=5", f"triton,file={tmp_path / 'trace.json'}")
    with serve(
        f"--model-repository={models.path}", *FLAGS, *(f"--trace-config={each}" for each in tracing)
    ) as served:
        with connections(served, 16) as opened:
            for one in opened * 4:
                assert request_path(one, "/v2/models/identity/infer", ONE)[0] == 200
        served.process.terminate()
        assert served.wait_until_exit() == 0
    traces = [trace for trace in json.loads(file.read_text()) if "timestamps" in trace]
    names = [
        [
            stamp["name"]
            for trace in traces
            if trace["id"] == number
            for stamp in trace["timestamps"]
        ]
        for number in {trace["id"] for trace in traces}
    ]
    assert len(names) == 5
    for stamps in names:
        assert stamps[:2] == ["HTTP_RECV_START", "HTTP_RECV_END"]
        assert stamps[-2:] == ["HTTP_SEND_START", "HTTP_SEND_END"]
        assert "COMPUTE_START" in stamps


def test_access_denials_are_counted_across_process_restarts(
    serve: Serve, models: Models, tmp_path: Path
) -> None:
    models.identity("identity", "FP32", ["rows", "columns"])
    flags = ("--http-restricted-api=inference:key=secret", "--metrics-interval-ms=50")
    counted = 'tritonpy_restricted_requests{api="inference",protocol="http"}'
    with serve(f"--model-repository={models.path}", *FLAGS, *flags) as served:
        with connections(served, 8) as opened:
            assert {request_path(one, "/v2/models/identity/infer", ONE)[0] for one in opened} == {
                403
            }
        served.wait(lambda: f"{counted} 8" in metrics(served), "they are counted")
        killed = {process.pid for process in processes(served)}
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        served.wait(
            lambda: killed.isdisjoint(each.pid for each in processes(served)), "they are gone"
        )
        served.wait(lambda: listener_count(served) == 2, "others accept")
        with connections(served, 4) as opened:
            for one in opened:
                request_path(one, "/v2/models/identity/infer", ONE)
        served.wait(lambda: f"{counted} 12" in metrics(served), "the count continues")
