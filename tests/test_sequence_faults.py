"""Sequences whose clients, workers, models or servers end before the sequence does."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import tritonclient.grpc

from tests.cancellation import CancellationServer, add_model, cancellation_server
from tests.conftest import TIMEOUT_S, Models, Serve, ServerProcess
from tests.sequence_clients import value_input, waiting
from tests.sequence_models import FACTOR, PYTHON, STRATEGIES, onnx_config, onnx_model, python_config

IDLE_US = 4_000_000  # the current sequence is never idle this long between two requests
ONE_SLOT = ("direct { }", "oldest { max_candidate_sequences: 1 }")
ISOLATED = 'parameters { key: "isolation" value { string_value: "process" } }'
MISSING_START = "must specify the START flag on the first request of the sequence"


def body(value: int, sequence: int | str, start: bool = False, end: bool = False) -> str:
    tensor = {"name": "IN", "shape": [1, 1], "datatype": "INT64", "data": [value]}
    flags = {"sequence_id": sequence, "sequence_start": start, "sequence_end": end}
    return json.dumps({"inputs": [tensor], "parameters": flags})


def infer(served: ServerProcess, model: str, value: int, sequence: int | str, **flags: bool) -> Any:
    """Return the number that a model returns, or the text of its error."""
    response = served.request(f"/v2/models/{model}/infer", body(value, sequence, **flags)).json()
    return response["error"] if "error" in response else response["outputs"][0]["data"][0]


@pytest.fixture(scope="module")
def running(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    models = Models(tmp_path_factory.mktemp("faults") / "models")
    for number, strategy in enumerate(ONE_SLOT):
        config = onnx_config(strategy, idle_us=IDLE_US).replace(
            "max_batch_size: 4", "max_batch_size: 1"
        )
        models.repository.add(f"one_seat_{number}", config, {1: {"model.onnx": onnx_model()}})
        patient = onnx_config(strategy, idle_us=3_600_000_000).replace(
            "max_batch_size: 4", "max_batch_size: 1"
        )
        models.repository.add(f"patient_{number}", patient, {1: {"model.onnx": onnx_model()}})
    for strategy in STRATEGIES:
        models.repository.add(
            f"mortal_{strategy}", python_config(strategy), {1: {"model.py": PYTHON}}
        )
        config = onnx_config(strategy, more=ISOLATED)
        models.repository.add(f"isolated_{strategy}", config, {1: {"model.onnx": onnx_model()}})
        for name in ("reloaded", "unloaded", "shared"):
            models.repository.add(
                f"{name}_{strategy}", onnx_config(strategy), {1: {"model.onnx": onnx_model()}}
            )
    crowded = onnx_config("oldest { max_candidate_sequences: 8 }", 2, idle_us=50_000)
    models.repository.add("crowded", crowded, {1: {"model.onnx": onnx_model()}})
    flags = ("--model-control-mode=explicit", "--load-model=*")
    with serve(f"--model-repository={models.path}", *flags) as served:
        yield served


def disconnect_http(served: ServerProcess, model: str) -> None:
    """Start a sequence on a connection and close the connection."""
    sent = body(1, 1, start=True).encode()
    head = (
        f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(sent)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", served.ports["http"]), TIMEOUT_S) as connection:
        connection.sendall(head.encode() + sent)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")


def cancel_stream(served: ServerProcess, model: str) -> None:
    """Start a sequence on a stream and cancel the stream."""
    responses: queue.SimpleQueue[Any] = queue.SimpleQueue()
    with tritonclient.grpc.InferenceServerClient(served.grpc) as client:
        client.start_stream(lambda result, error: responses.put((result, error)))
        client.async_stream_infer(
            model, [value_input(tritonclient.grpc, 1)], sequence_id=1, sequence_start=True
        )
        assert responses.get(timeout=TIMEOUT_S)[1] is None
        client.stop_stream(cancel_requests=True)


@pytest.mark.parametrize("disconnect", [disconnect_http, cancel_stream])
@pytest.mark.parametrize("model", [f"one_seat_{number}" for number in range(len(ONE_SLOT))])
def test_the_slot_of_a_disconnected_client_goes_to_the_next_sequence(
    running: ServerProcess, model: str, disconnect: Any
) -> None:
    disconnect(running, model)
    assert infer(running, model, 5, 2, start=True) == 5  # waits for the slot in the backlog
    assert MISSING_START in infer(running, model, 2, 1)
    assert infer(running, model, 1, 2, end=True) == 5 * FACTOR + 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_killed_worker_ends_its_sequences(running: ServerProcess, strategy: str) -> None:
    model = f"mortal_{strategy}"
    for sequence in (1, 2):
        assert infer(running, model, 5, sequence, start=True) == 5
    assert "Stub process" in infer(running, model, -1, 1)
    for sequence in (1, 2):
        assert MISSING_START in infer(running, model, 7, sequence)
        assert infer(running, model, 7, sequence, start=True) == 7
        assert infer(running, model, 1, sequence, end=True) == 7 * FACTOR + 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_implicit_states_survive_a_killed_worker(running: ServerProcess, strategy: str) -> None:
    model = f"isolated_{strategy}"
    assert infer(running, model, 5, 1, start=True) == 5
    before = isolated_workers(running)
    for process in before:
        os.kill(process, signal.SIGKILL)
    running.wait(
        lambda: len(isolated_workers(running) - before) == len(before) > 0,
        "other workers are there",
    )
    assert infer(running, model, 1, 1, end=True) == 5 * FACTOR + 1


def isolated_workers(served: ServerProcess) -> set[int]:
    """Return the ids of the processes that run a backend of the server."""
    found = set()
    for process in psutil.Process(served.process.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if any("backend_process" in word for word in process.cmdline()):
                found.add(process.pid)
    return found


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_live_sequences_end_with_a_reload(running: ServerProcess, strategy: str) -> None:
    model = f"reloaded_{strategy}"
    assert infer(running, model, 5, 1, start=True) == 5
    config = json.loads(running.request(f"/v2/models/{model}/config").body)
    config["sequence_batching"]["max_sequence_idle_microseconds"] += 1
    response = running.request(
        f"/v2/repository/models/{model}/load",
        json.dumps({"parameters": {"config": json.dumps(config)}}),
    )
    assert response.status == 200, response.body
    assert MISSING_START in infer(running, model, 1, 1)
    assert infer(running, model, 1, 1, start=True, end=True) == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_request_of_an_unloading_model_gets_one_response(
    running: ServerProcess, strategy: str
) -> None:
    """Requests that arrived in time are served in order; later ones are refused."""
    model, responses = f"unloaded_{strategy}", queue.SimpleQueue[Any]()
    with tritonclient.grpc.InferenceServerClient(running.grpc) as client:
        client.start_stream(lambda result, error: responses.put((result, error)))
        for number in range(200):
            start, last = number == 0, number == 199
            inputs = [value_input(tritonclient.grpc, 1)]
            client.async_stream_infer(
                model, inputs, sequence_id=1, sequence_start=start, sequence_end=last
            )
            if number == 100:
                assert running.request(f"/v2/repository/models/{model}/unload", "{}").status == 200
        found = [responses.get(timeout=TIMEOUT_S) for _ in range(200)]
        client.stop_stream()
    served = [int(result.as_numpy("OUT")[0, 0]) for result, error in found if error is None]
    assert served == fold_of_ones(len(served))
    texts = {error.message() for _, error in found if error is not None}
    assert all("Request for unknown model" in text or MISSING_START in text for text in texts), (
        texts
    )
    assert responses.empty()


@pytest.mark.parametrize("number", range(len(ONE_SLOT)))
def test_queued_sequences_of_an_unloading_model_do_not_wait_for_unfinishable_ones(
    running: ServerProcess, number: int
) -> None:
    model = f"patient_{number}"
    with ThreadPoolExecutor(5) as pool:
        assert infer(running, model, 1, 1, start=True) == 1
        others = [
            pool.submit(infer, running, model, each, each, start=True) for each in range(2, 7)
        ]
        running.wait(lambda: waiting(running, model) == 5, "all others wait")
        assert running.request(f"/v2/repository/models/{model}/unload", "{}").status == 200
        assert [each.result(TIMEOUT_S) for each in others] == [2, 3, 4, 5, 6]


def fold_of_ones(count: int) -> list[int]:
    """Return the running totals of ones with 64-bit wraparound."""
    totals, total = [], np.int64(0)
    with np.errstate(over="ignore"):
        for _ in range(count):
            total = total * np.int64(FACTOR) + np.int64(1)
            totals.append(int(total))
    return totals


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_two_clients_with_one_id_are_one_sequence(running: ServerProcess, strategy: str) -> None:
    """The later START restarts the sequence; requests of both clients continue it."""
    model = f"shared_{strategy}"
    assert infer(running, model, 1, 9, start=True) == 1
    assert infer(running, model, 10, 9, start=True) == 10
    assert infer(running, model, 2, 9) == 10 * FACTOR + 2
    assert infer(running, model, 3, 9, end=True) == (10 * FACTOR + 2) * FACTOR + 3
    assert MISSING_START in infer(running, model, 4, 9, end=True)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_concurrent_clients_with_one_id_all_get_responses(
    running: ServerProcess, strategy: str
) -> None:
    def send_values(value: int) -> list[Any]:
        return [
            infer(running, f"shared_{strategy}", value, 8, start=number % 3 == 0)
            for number in range(30)
        ]

    with ThreadPoolExecutor(4) as pool:
        responses = [response for found in pool.map(send_values, range(1, 5)) for response in found]
    assert all(isinstance(response, int) for response in responses), responses
    assert infer(running, f"shared_{strategy}", 1, 8, start=True, end=True) == 1


def test_unfinished_sequences_are_released_when_idle(running: ServerProcess) -> None:
    with ThreadPoolExecutor(32) as pool:
        started = pool.map(
            lambda number: infer(running, "crowded", number, f"flood {number}", start=True),
            range(1, 401),
        )
        assert list(started) == list(range(1, 401))
    assert infer(running, "crowded", 3, "after it", start=True, end=True) == 3


@pytest.fixture(scope="module")
def slow(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CancellationServer]:
    """Models that run a request until its file exists; one slot each."""
    models, folder = (
        Models(tmp_path_factory.mktemp("slow") / "models"),
        tmp_path_factory.mktemp("progress"),
    )
    for strategy in STRATEGIES:
        batching = f"sequence_batching {{ {ONE_SLOT[strategy == 'oldest']} max_sequence_idle_microseconds: 60000000 }}"
        add_model(models, f"slow_{strategy}", folder, more=batching)
    flags = (f"--model-repository={models.path}", "--metrics-interval-ms=50")
    with serve(*flags) as served, cancellation_server(served, folder) as made:
        yield made


def in_sequence(name: str, sequence: int, **flags: bool) -> dict[str, Any]:
    return {
        "name": name,
        "sequence_id": sequence,
        **{f"sequence_{flag}": value for flag, value in flags.items()},
    }


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_cancelling_in_mid_sequence_releases_the_slot(
    slow: CancellationServer, strategy: str
) -> None:
    model, names = f"slow_{strategy}", [f"{letter} {strategy}" for letter in "abc"]
    first = slow.infer(model, **in_sequence(names[0], 1, start=True))
    slow.wait_for_event(f"begin {names[0]}")
    second = slow.infer(model, **in_sequence(names[1], 1))
    other = slow.infer(model, **in_sequence(names[2], 2, start=True, end=True))
    slow.wait_until_queued(model, 2)
    second.cancel()
    slow.wait_until_queued(model, 1)
    slow.finish(names[0])
    first.result()
    slow.finish(names[2])
    other.result()  # although the first sequence had no END and would be idle for a minute
    assert slow.events(*names) == [
        f"{what} {names[at]}" for at in (0, 2) for what in ("begin", "done")
    ]


def test_live_sequences_finish_while_the_server_drains(
    serve: Serve, models: Models, tmp_path: Path
) -> None:
    """Running and queued requests are served; new sequences are refused."""
    batching = "sequence_batching { max_sequence_idle_microseconds: 60000000 }"
    add_model(models, "slow", tmp_path, more=batching)
    with (
        serve(f"--model-repository={models.path}", "--metrics-interval-ms=50") as served,
        cancellation_server(served, tmp_path) as made,
    ):
        responses = []
        for number in range(3):
            parameters = in_sequence(f"drain {number}", 1, start=number == 0, end=number == 2)
            responses.append(made.infer("slow", **parameters))
            made.wait_for_event("begin drain 0")
            made.wait_until_queued("slow", number)
        served.process.send_signal(signal.SIGTERM)
        served.wait_until_logged(r"Signal \(15\) received")
        for number, response in enumerate(responses):
            made.finish(f"drain {number}")
            assert response.result().id == f"drain {number}"
        assert served.wait_until_exit() == 0
