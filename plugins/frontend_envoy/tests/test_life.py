"""The server's life in Envoy, from start to the last process."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import sys
import threading

import psutil
import pytest

from tritonpy.testing import free_port

from .serving import PATIENCE_S, WAITING, WHERE

ONE = json.dumps({"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1], "data": [3]}]})
INFER = "/v2/models/{}/infer"


@pytest.fixture
def busy(start, models):
    """A server with one request that is being executed until `open` exists."""
    folder = models.add("waiting", WAITING)
    served = start(f"--model-repository={models.path}")
    answers = []

    def ask():
        try:
            answers.append(served.ask(INFER.format("waiting"), ONE))
        except (OSError, http.client.HTTPException) as error:
            answers.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    served.until((folder / "entered").exists, "the request is being executed")
    yield served, folder, answers
    (folder / "open").touch()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def everything_of(served):
    parent = psutil.Process(served.process.pid)
    return [parent, *parent.children(recursive=True)]


def until_gone(served, processes):
    served.until(
        lambda: all(not one.is_running() or one.status() == psutil.STATUS_ZOMBIE for one in processes),
        "every process is gone",
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_the_live_request_finish_and_refuses_new_ones(busy, number):
    served, folder, answers = busy
    connection = http.client.HTTPConnection("127.0.0.1", served.ports["http"], timeout=PATIENCE_S)
    connection.request("GET", "/v2/health/live")
    connection.getresponse().read()
    everything = everything_of(served)
    served.process.send_signal(number)
    served.until(lambda: not is_open(served.ports["http"]), "nobody can connect any more")
    connection.request("POST", INFER.format("waiting"), ONE)
    refused = connection.getresponse()
    assert (refused.status, "stopping" in refused.read().decode()) == (503, True)
    connection.close()
    assert answers == []
    (folder / "open").touch()
    assert served.until_ended() == 0
    assert [(answer.status, answer.json()["outputs"][0]["data"]) for answer in answers] == [(200, [3.0])]
    assert "Traceback" not in served.log
    until_gone(served, everything)


def test_a_second_signal_ends_everything_at_once(busy):
    served, _, _ = busy
    everything = everything_of(served)
    served.process.send_signal(signal.SIGINT)
    served.until_logged(r"Signal \(2\) received")
    served.process.send_signal(signal.SIGINT)
    assert served.until_ended() == 1
    assert "second signal" in served.log
    until_gone(served, everything)


def test_a_request_that_never_ends_does_not_hold_the_server_beyond_its_time_out(start, models):
    folder = models.add("waiting", WAITING)
    served = start(f"--model-repository={models.path}", "--exit-timeout-secs=1")
    with served.connect() as connection:
        connection.sendall(
            f"POST {INFER.format('waiting')} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(ONE)}\r\n\r\n{ONE}".encode()
        )
        served.until((folder / "entered").exists, "the request is being executed")
        served.process.send_signal(signal.SIGTERM)
        assert served.until_ended() == 1
    assert "Exit timeout expired. Exiting immediately." in served.log


def test_the_end_of_envoy_is_told_and_leaves_nothing(busy):
    served, _, answers = busy
    everything = everything_of(served)
    served.envoy.kill()
    assert served.until_ended() == 1
    assert "Envoy was killed by SIGKILL. The server was inside it: exiting" in served.log
    until_gone(served, everything)
    served.until(lambda: answers, "the live request hears of it")
    assert isinstance(answers[0], OSError | http.client.HTTPException)


def test_the_end_of_who_started_envoy_is_told_and_leaves_nothing(busy, tmp_path):
    served, _, _ = busy
    everything = everything_of(served)
    folder = served.envoy.cmdline()[2]
    served.process.kill()
    until_gone(served, everything)
    assert "the process that started Envoy is gone: exiting" in served.log
    assert not os.path.exists(folder)


def test_envoy_that_is_asked_by_somebody_else_takes_the_server_with_it(start, models):
    models.add("identity")
    served = start(f"--model-repository={models.path}")
    everything = everything_of(served)
    served.envoy.terminate()
    assert served.until_ended() == 0
    assert "Envoy was told to end by somebody else" in served.log
    assert "successfully unloaded 'identity' version 1" in served.log
    until_gone(served, everything)


def test_a_signal_while_the_server_starts_ends_it(start, models):
    models.add("identity")
    served = start(f"--model-repository={models.path}", ready=False)
    served.until(lambda: served.envoy, "Envoy is there")
    served.process.send_signal(signal.SIGTERM)
    assert served.until_ended() in {0, 130}
    assert "Traceback" not in served.log


def test_a_taken_port_is_an_error_with_its_number(start, models):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        served = start(
            f"--model-repository={models.path}", f"--http-port={port}", "--grpc-port=0", ready=False, ports=False
        )
        assert served.until_ended() == 1
        text = f"error: cannot listen for HTTP on 127.0.0.1:{port}: Address already in use; choose another port or stop what uses it\n"
        assert served.log == text


def test_a_port_that_only_envoy_finds_taken_is_an_error_too(start, models):
    port = free_port()
    flags = (f"--http-port={port}", f"--grpc-port={port}", "--http-address=0.0.0.0", "--grpc-address=127.0.0.1")
    served = start(f"--model-repository={models.path}", *flags, "--metrics-port=0", ready=False, ports=False)
    assert served.until_ended() == 1
    assert "error: Envoy cannot listen on all addresses" in served.log
    assert "Traceback" not in served.log


def test_a_model_that_does_not_load_ends_the_start_as_ever(start, models):
    models.add("broken", "this is no Python")
    served = start(f"--model-repository={models.path}", ready=False)
    assert served.until_ended() == 1
    assert "error: failed to load all models: broken. Repair or remove them" in served.log
    assert "Traceback" not in served.log.rpartition("error: ")[2]


def test_an_option_that_is_wrong_is_found_before_envoy_is_started(start, models, tmp_path):
    (tmp_path / "server.yaml").write_text(json.dumps({"transport": {"envoy": {"threads": 0}}}))
    served = start(f"--config={tmp_path / 'server.yaml'}", f"--model-repository={models.path}", ready=False)
    assert served.until_ended() == 1
    assert "transport.envoy.threads" in served.log
    assert "listens" not in served.log


def test_nothing_that_was_set_for_envoy_reaches_the_processes_of_models(start, models):
    models.add("where", WHERE, answered="TYPE_STRING")
    served = start(f"--model-repository={models.path}")
    told = json.loads(served.ask(INFER.format("where"), ONE).json()["outputs"][0]["data"][0])
    assert told["executable"] == sys.executable
    assert told["prefix"] == sys.prefix
    for name in ("PYTHONHOME", "PYTHONPATH", "LD_PRELOAD", "TRITONPY_ENVOY_CONTROL"):
        assert told["environment"].get(name) == os.environ.get(name)


def test_metrics_are_served_inside(start, models):
    models.add("identity")
    served = start(f"--model-repository={models.path}")
    assert served.ask(INFER.format("identity"), ONE).status == 200
    connection = http.client.HTTPConnection("127.0.0.1", served.ports["metrics"], timeout=PATIENCE_S)
    connection.request("GET", "/metrics")
    told = connection.getresponse().read().decode()
    assert re.search(r'nv_inference_request_success\{model="identity",version="1"\} 1(\.0)?\n', told)
    connection.close()


def test_a_client_that_leaves_takes_its_request_with_it(start, models):
    folder = models.add("waiting", WAITING)
    served = start(f"--model-repository={models.path}")
    with served.connect() as connection:
        connection.sendall(
            f"POST {INFER.format('waiting')} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(ONE)}\r\n\r\n{ONE}".encode()
        )
        served.until((folder / "entered").exists, "the request is being executed")
    served.until((folder / "cancelled").exists, "the model hears of it")


def is_open(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S).close()
    except ConnectionError:
        return False
    return True
