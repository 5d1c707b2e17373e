"""The life of frontend processes: ports, reloads, deaths and drains under load, and what the engine keeps of them."""

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

from tests.conftest import Models, Serve, Served
from tests.fleets import (
    FLAGS,
    ONE,
    Load,
    accepting,
    add_models,
    ask,
    connections,
    metrics,
    pending,
    processes,
    said,
    slow_stream,
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("told") / "count"


@pytest.fixture(scope="module")
def fleet(serve: Serve, tmp_path_factory: pytest.TempPathFactory, told: Path) -> Iterator[Served]:
    models = Models(tmp_path_factory.mktemp("fleet") / "models")
    add_models(models, told)
    flags = ("--model-control-mode=explicit", "--load-model=*", "--allow-client-shm=true", "--metrics-interval-ms=50")
    with serve(f"--model-repository={models.path}", *FLAGS, *flags) as served:
        yield served


def test_a_reload_under_load_loses_nothing(fleet: Served) -> None:
    with Load(fleet) as load:
        for _ in range(5):
            load.goes_on(20)
            assert fleet.ask("/v2/repository/models/identity/load", "{}").status == 200
        load.goes_on()
    assert load.failures == []
    assert load.lost == 0


def test_a_process_that_is_killed_under_load_is_started_again_and_costs_its_own_clients_alone(fleet: Served) -> None:
    with Load(fleet) as load:
        load.goes_on()
        first, other = processes(fleet)
        first.kill()
        fleet.wait(lambda: first.pid not in [each.pid for each in processes(fleet)], "it is gone")
        load.goes_on()
        fleet.wait(lambda: accepting(fleet) == 2, "another one accepts")
        assert other.pid in [each.pid for each in processes(fleet)]
        load.goes_on()
    assert load.failures == []
    fleet.until_logged("frontend process [01] died: it was killed by signal 9")
    fleet.until_logged("frontend process [01] is started again")
    fleet.wait(lambda: pending(fleet, "identity") == 0, "no request of it is left")


def test_the_stream_of_a_process_that_is_killed_is_cancelled(fleet: Served, told: Path) -> None:
    ended = Path(f"{told}.ended")
    for path in (told, ended):
        path.unlink(missing_ok=True)
    with slow_stream(fleet):
        fleet.wait(lambda: told.exists() and said(told) > 10, "the model answers")
        for process in processes(fleet):
            process.kill()
        fleet.wait(ended.exists, "the model hears that nobody listens")
    fleet.wait(lambda: accepting(fleet) == 2, "others accept")


@pytest.mark.parametrize("frontend", ["http", "grpc"])
def test_a_port_that_is_taken_is_the_error_that_it_is_in_one_process(
    serve: Serve, models: Models, free_ports: Callable[[int], list[int]], frontend: str
) -> None:
    models.identity("identity", "FP32", ["rows"])
    (port,) = free_ports(1)
    said = []
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        for flags in (FLAGS, FLAGS[:1]):
            with serve(f"--model-repository={models.path}", f"--{frontend}-port={port}", *flags, until=None) as served:
                assert served.until_ended() == 1
                said.append([line for line in served.log.splitlines() if f":{port}" in line][-1])
    assert said[0] == said[1]


def test_two_servers_do_not_share_a_port_by_accident(serve: Serve, models: Models) -> None:
    models.identity("identity", "FP32", ["rows"])
    with serve(f"--model-repository={models.path}", *FLAGS) as first:
        flags = (f"--http-port={first.ports['http']}", *FLAGS)
        with serve(f"--model-repository={models.path}", *flags, until=None) as second:
            assert second.until_ended() == 1
            assert "Address already in use" in second.log


@pytest.fixture
def gated(serve: Serve, models: Models, tmp_path: Path) -> Iterator[tuple[Served, Path]]:
    gate = tmp_path / "open"
    models.toy("gate", more=f'parameters {{ key: "gate" value {{ string_value: "{gate}" }} }}')
    with serve(f"--model-repository={models.path}", *FLAGS) as served:
        yield served, gate


def test_live_requests_finish_and_every_process_ends_with_the_server(gated: tuple[Served, Path]) -> None:
    served, gate = gated
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(served.ask("/v2/models/gate/infer", ONE)))
    thread.start()
    served.wait(gate.with_suffix(".entered").exists, "the request is being executed")
    left = processes(served)
    served.process.send_signal(signal.SIGTERM)
    served.until_logged("Signal")
    for process in left:
        process.send_signal(signal.SIGTERM)  # as a service manager does; it is the server's to decide
    gate.touch()
    thread.join()
    assert [answer.status for answer in answers] == [200]
    assert served.until_ended() == 0
    assert not any(process.is_running() for process in left)


def test_the_death_of_the_engine_is_the_end_of_all(gated: tuple[Served, Path]) -> None:
    served, _ = gated
    left = psutil.Process(served.process.pid).children(recursive=True)
    served.process.kill()
    served.process.wait()
    gone, alive = psutil.wait_procs(left, 60)
    assert not alive
    assert len(gone) >= 2


def test_a_unix_domain_socket_serves_both_protocols(serve: Serve, models: Models, tmp_path: Path) -> None:
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
        assert served.until_ended() == 0
    assert not any(path.exists() for path in paths)


def test_traces_have_the_moments_of_the_frontend_and_are_as_many_as_asked_for(
    serve: Serve, models: Models, tmp_path: Path
) -> None:
    models.identity("identity", "FP32", ["rows", "columns"])
    file = tmp_path / "trace.json.0"
    tracing = ("level=TIMESTAMPS", "rate=4", "count=5", f"triton,file={tmp_path / 'trace.json'}")
    with serve(f"--model-repository={models.path}", *FLAGS, *(f"--trace-config={each}" for each in tracing)) as served:
        with connections(served, 16) as opened:
            for one in opened * 4:
                assert ask(one, "/v2/models/identity/infer", ONE)[0] == 200
        served.process.terminate()
        assert served.until_ended() == 0
    traces = [trace for trace in json.loads(file.read_text()) if "timestamps" in trace]
    names = [
        [stamp["name"] for trace in traces if trace["id"] == number for stamp in trace["timestamps"]]
        for number in {trace["id"] for trace in traces}
    ]
    assert len(names) == 5
    for stamps in names:
        assert stamps[:2] == ["HTTP_RECV_START", "HTTP_RECV_END"]
        assert stamps[-2:] == ["HTTP_SEND_START", "HTTP_SEND_END"]
        assert "COMPUTE_START" in stamps


def test_refused_callers_are_counted_by_the_server_though_a_process_dies(
    serve: Serve, models: Models, tmp_path: Path
) -> None:
    models.identity("identity", "FP32", ["rows", "columns"])
    flags = ("--http-restricted-api=inference:key=secret", "--metrics-interval-ms=50")
    counted = 'tritonpy_restricted_requests{api="inference",protocol="http"}'
    with serve(f"--model-repository={models.path}", *FLAGS, *flags) as served:
        with connections(served, 8) as opened:
            assert {ask(one, "/v2/models/identity/infer", ONE)[0] for one in opened} == {403}
        served.wait(lambda: f"{counted} 8" in metrics(served), "they are counted")
        killed = {process.pid for process in processes(served)}
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        served.wait(lambda: killed.isdisjoint(each.pid for each in processes(served)), "they are gone")
        served.wait(lambda: accepting(served) == 2, "others accept")
        with connections(served, 4) as opened:
            for one in opened:
                ask(one, "/v2/models/identity/infer", ONE)
        served.wait(lambda: f"{counted} 12" in metrics(served), "the count goes on")
