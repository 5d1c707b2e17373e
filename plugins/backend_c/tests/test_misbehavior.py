"""Backends that break the rules of the interface: one answer, no hang, and others never notice."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from plugins.backend_c.tests.conftest import Client, Serve, int_model
from tritonpy_backend_c.backend import CBackend
from tritonpy_testing import BackendHarness, model_config

(
    GOOD, SEND_TWICE, TWO_FINALS, NO_FINAL, RELEASE_TWICE, SEND_LATE, THROW, FAIL_EXECUTION,
    NEVER_RELEASE, DROP_RESPONSE, USE_RELEASED, CRASH, EXIT, SLOW, RELEASE_FIRST, INVALID_TYPE,
    WRONG_SIZE, ASYNCHRONOUS, NEVER_ANSWER, DEFER, ANSWER_DEFERRED, FAIL_AFTER_DEFERRED,
) = range(22)  # fmt: skip


@pytest.fixture
def client(serve: Serve, isolation: str):
    with serve({"m": int_model("misbehave"), "other": int_model("sleeper")}, isolation) as client:
        yield client
        assert client.number("other", 0) == 1


@pytest.mark.parametrize(
    "mode",
    [
        GOOD,
        SEND_TWICE,
        TWO_FINALS,
        RELEASE_TWICE,
        SEND_LATE,
        NEVER_RELEASE,
        USE_RELEASED,
        SLOW,
        RELEASE_FIRST,
        ASYNCHRONOUS,
    ],
)
def test_a_request_has_exactly_one_answer(client: Client, mode: int) -> None:
    assert [client.number("m", mode) for _ in range(3)] == [mode] * 3


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        (NO_FINAL, "the backend released the request without a final response"),
        (DROP_RESPONSE, "the backend released the request without a final response"),
        (THROW, "TRITONBACKEND_ModelInstanceExecute threw an exception: out of range"),
        (FAIL_EXECUTION, "not now"),
        (INVALID_TYPE, "the backend sent output 'OUT' with an invalid data type"),
    ],
)
def test_a_request_without_an_answer_fails_with_the_reason(
    client: Client, mode: int, text: str
) -> None:
    assert text in client.error("m", mode)
    assert client.number("m", GOOD) == GOOD


def test_an_output_of_the_wrong_size_is_refused_or_passed_on_as_bytes(client: Client) -> None:
    response = client.ask("m", WRONG_SIZE)
    if response.error is None:
        assert response.outputs[0].nbytes == 3
    assert client.number("m", GOOD) == GOOD


@pytest.mark.parametrize("mode", [SEND_TWICE, TWO_FINALS, SEND_LATE, RELEASE_TWICE])
def test_a_broken_rule_is_logged(
    client: Client, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    client.number("m", mode)
    deadline = time.monotonic() + 30
    while "the backend " not in caplog.text:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_response_is_delivered_while_the_execution_goes_on(client: Client) -> None:
    begin = time.monotonic()
    assert client.number("m", SLOW) == SLOW
    assert time.monotonic() - begin < 0.25  # the execution takes 0.3 s
    assert client.number("m", GOOD) == GOOD


def test_an_execution_may_answer_requests_of_earlier_ones(client: Client) -> None:
    first = client.send("m", DEFER)
    second = client.send("m", ANSWER_DEFERRED)
    assert first.numbers() == [DEFER]
    assert "not now" in client.error("m", FAIL_AFTER_DEFERRED)
    assert second.numbers() == [DEFER]
    assert client.number("m", GOOD) == GOOD


@pytest.mark.parametrize("mode", [CRASH, EXIT])
def test_a_crash_ends_only_the_worker(serve: Serve, mode: int) -> None:
    with serve({"m": int_model("misbehave"), "other": int_model("sleeper")}, "process") as client:
        for _ in range(3):
            assert "m_0" in client.error("m", mode) or "worker" in client.error("m", mode)
            assert client.number("m", GOOD) == GOOD
            assert client.number("other", 0) == 1


def test_requests_without_an_answer_fail_when_their_instance_is_closed(
    backends: Path, tmp_path: Path
) -> None:
    shutil.copytree(backends / "misbehave", tmp_path / "1")
    with BackendHarness(CBackend, model_config(int_model("misbehave")), tmp_path) as harness:
        request = harness.request({"IN": np.array([NEVER_ANSWER], np.int32)})
        harness.recorder.wait_s = 0.2
        with pytest.raises(AssertionError, match="no final response"):
            harness.execute(request)
        harness.close_instance()
        [[response]] = harness.recorder.wait(request)
    assert response.error is not None
    assert "ended without a final response" in response.error.message


def test_killed_workers_answer_every_request_once(serve: Serve) -> None:
    config = int_model("misbehave", "instance_group { count: 2 kind: KIND_CPU }")
    with serve({"m": config}, "process") as client:
        stop = threading.Event()
        outcomes: list[str] = []

        def load() -> None:
            while not stop.is_set():
                response = client.ask("m", ASYNCHRONOUS)
                outcomes.append("error" if response.error is not None else "answer")

        threads = [threading.Thread(target=load, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            before = len(outcomes)
            workers = [
                process for process in psutil.Process().children()
                if process.status() != psutil.STATUS_ZOMBIE
            ]  # fmt: skip
            if workers:
                os.kill(workers[0].pid, signal.SIGKILL)
            deadline = time.monotonic() + 30
            while len(outcomes) < before + 20:
                assert time.monotonic() < deadline, outcomes[-20:]
                time.sleep(0.01)
        stop.set()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    assert outcomes.count("answer") > outcomes.count("error")
