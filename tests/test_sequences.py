"""Sequences from a client's view: both protocols, string and numeric ids, instances, shutdown."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

from tests.sequence_clients import waiting

MODEL = """
import os, time
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.sums, self.where = {}, int(args["model_instance_name"].rpartition("_")[2])

    def execute(self, requests):
        return [self.respond(request) for request in requests]

    def respond(self, request):
        inputs = {tensor.name(): tensor.as_numpy().ravel() for tensor in request.inputs()}
        if not inputs["READY"][0]:
            assert not request.correlation_id() and not inputs["IN"].any()
            return pb_utils.InferenceResponse([])
        name = inputs["CORRID"][0]
        name = name.decode() if isinstance(name, bytes) else int(name)
        assert name == request.correlation_id(), (name, request.correlation_id())
        if inputs["START"][0]:
            self.sums[name] = 0
        value = int(inputs["IN"][0])
        while value < 0 and not os.path.exists(GATE):
            open(GATE + ".entered", "w").close()
            time.sleep(0.01)
        self.sums[name] += value
        out = np.array([[self.sums[name], self.where, inputs["END"][0]]], np.int32)
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", out)])
"""
CONFIG = """
backend: "python"
max_batch_size: {batch}
input [{{ name: "IN" data_type: TYPE_INT32 dims: [1] }}]
output [{{ name: "OUT" data_type: TYPE_INT32 dims: [3] }}]
instance_group [{{ count: {count} kind: KIND_CPU }}]
sequence_batching {{
  max_sequence_idle_microseconds: {idle_us}
  {strategy}
  control_input [
    {{ name: "START" control [{{ kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] }}] }},
    {{ name: "END" control [{{ kind: CONTROL_SEQUENCE_END int32_false_true: [0, 1] }}] }},
    {{ name: "READY" control [{{ kind: CONTROL_SEQUENCE_READY bool_false_true: [false, true] }}] }},
    {{ name: "CORRID" control [{{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_{ids} }}] }}
  ]
}}
"""
MODELS = {
    "direct": {"strategy": "direct {}"},
    "oldest": {"strategy": "oldest {}"},
    "direct_named": {"strategy": "direct {}", "ids": "STRING"},
    "oldest_named": {"strategy": "oldest {}", "ids": "STRING"},
    "hasty": {"strategy": "direct {}", "batch": 1, "count": 1, "idle_us": 200_000},
    "one": {"strategy": "oldest {}", "batch": 1, "count": 1},
}


def write(models: Any, name: str, gate: Path, **settings: Any) -> None:
    settings = {"batch": 4, "count": 2, "idle_us": 30_000_000, "ids": "UINT64", **settings}
    models.repository.add(
        name, CONFIG.format(**settings), {1: {"model.py": f"GATE = {str(gate)!r}\n{MODEL}"}}
    )


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gate") / "open"


@pytest.fixture(scope="module")
def sequences(serve: Any, gate: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A shared server for the tests of this file that do not change it."""
    from tests.conftest import Models

    models = Models(tmp_path_factory.mktemp("sequences") / "models")
    for name, settings in MODELS.items():
        write(models, name, gate, **settings)
    with serve(f"--model-repository={models.path}") as served:
        yield served


def value(protocol: Any, number: int) -> Any:
    given = protocol.InferInput("IN", [1, 1], "INT32")
    given.set_data_from_numpy(np.array([[number]], np.int32))
    return given


class Stream:
    """A gRPC stream; `responses(n)` waits for n responses: (id, output), or (None, error text)."""

    def __init__(self, url: str) -> None:
        self._arrived: queue.Queue[Any] = queue.Queue()
        self._client = tritonclient.grpc.InferenceServerClient(url)
        self._client.start_stream(lambda result, error: self._arrived.put((result, error)))

    def send(
        self,
        model: str,
        sequence: Any,
        number: int,
        start: bool = False,
        end: bool = False,
        **more: Any,
    ) -> None:
        self._client.async_stream_infer(
            model,
            [value(tritonclient.grpc, number)],
            request_id=f"{sequence}: {number}",
            sequence_id=sequence,
            sequence_start=start,
            sequence_end=end,
            **more,
        )

    def responses(self, count: int) -> list[Any]:
        found = []
        for _ in range(count):
            result, error = self._arrived.get(timeout=30)
            if error is not None:
                found.append((None, error.message()))
            else:
                found.append((result.get_response().id, result.as_numpy("OUT").ravel().tolist()))
        return found

    def close(self) -> None:
        """Close the stream, including requests in flight."""
        self._client.stop_stream(cancel_requests=True)
        self._client.close()


@pytest.fixture
def stream(sequences: Any) -> Iterator[Stream]:
    opened = Stream(sequences.grpc)
    yield opened
    opened.close()


def infer_step(
    module: Any,
    client: Any,
    model: str,
    sequence: Any,
    number: int,
    start: bool = False,
    end: bool = False,
) -> Any:
    given = {"sequence_id": sequence, "sequence_start": start, "sequence_end": end}
    return client.infer(model, [value(module, number)], **given).as_numpy("OUT").ravel().tolist()


@pytest.mark.parametrize("model", ["direct", "oldest", "direct_named", "oldest_named"])
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_sequences_of_different_clients_are_independent(
    sequences: Any, protocol: str, model: str
) -> None:
    module = getattr(tritonclient, protocol)
    found: dict[Any, list[Any]] = {}

    def run_sequence(sequence: Any) -> None:
        with module.InferenceServerClient(getattr(sequences, protocol)) as client:
            found[sequence] = [
                infer_step(module, client, model, sequence, step, step == 1, step == 6)
                for step in range(1, 7)
            ]

    names = [f"{protocol} sequence {i}" if model.endswith("named") else 1000 + i for i in range(12)]
    threads = [threading.Thread(target=run_sequence, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in names:
        assert [total for total, _, _ in found[name]] == [1, 3, 6, 10, 15, 21]
        assert [ends for _, _, ends in found[name]] == [0, 0, 0, 0, 0, 1]
        assert len({where for _, where, _ in found[name]}) == 1, "a sequence changed its instance"


@pytest.mark.parametrize("model", ["direct", "oldest"])
def test_a_stream_may_send_all_requests_at_once(stream: Stream, model: str) -> None:
    count, length = 25, 8  # more sequences than slots
    for step in range(1, length + 1):
        for sequence in range(1, count + 1):
            stream.send(model, sequence, step * sequence, step == 1, step == length)
    sums: dict[str, list[int]] = {}
    for name, response in stream.responses(count * length):
        assert name is not None, response
        sums.setdefault(name.partition(":")[0], []).append(response[0])
    triangle = [step * (step + 1) // 2 for step in range(1, length + 1)]
    assert sums == {
        str(sequence): [sequence * each for each in triangle] for sequence in range(1, count + 1)
    }


def test_an_abandoned_sequence_releases_its_slot(sequences: Any, stream: Stream) -> None:
    left = Stream(sequences.grpc)
    left.send("hasty", 1, 5, start=True)
    assert left.responses(1) == [("1: 5", [5, 0, 0])]
    left.close()
    stream.send("hasty", 2, 6, start=True, end=True)
    assert stream.responses(1) == [("2: 6", [6, 0, 1])]


@pytest.mark.parametrize("model", ["one", "hasty"])
def test_a_disconnect_cancels_queued_requests(
    sequences: Any, stream: Stream, gate: Path, model: str
) -> None:
    entered = gate.with_name("open.entered")
    entered.unlink(missing_ok=True)
    gone = Stream(sequences.grpc)
    gone.send(model, 1, -1, start=True)
    sequences.wait(entered.exists, "the first request is being executed")
    gone.send(model, 1, 2)
    gone.send(model, 1, 3, end=True)
    stream.send(model, 2, 7, start=True, end=True)
    sequences.wait(lambda: waiting(sequences, model) == 3, "all others wait")
    gone.close()
    sequences.wait(
        lambda: waiting(sequences, model) == 1, "those of the lost client do not wait any more"
    )
    gate.touch()
    try:
        assert stream.responses(1) == [("2: 7", [7, 0, 1])]
    finally:
        gate.unlink()
    stream.send(model, 1, 2)
    ((name, text),) = stream.responses(1)
    assert name is None
    assert "must specify the START flag" in text


@pytest.fixture
def own(serve: Any, models: Any, tmp_path: Path) -> Iterator[Any]:
    write(models, "direct", tmp_path / "gate", **MODELS["direct"])
    write(models, "oldest", tmp_path / "gate", **MODELS["oldest"])
    with serve(
        f"--model-repository={models.path}", "--model-control-mode=explicit", "--load-model=*"
    ) as served:
        yield served


@pytest.mark.parametrize("model", ["direct", "oldest"])
def test_a_draining_server_finishes_its_sequences_and_starts_no_new_ones(
    own: Any, model: str
) -> None:
    stream = Stream(own.grpc)
    stream.send(model, 1, 1, start=True)
    assert stream.responses(1)[0][1][0] == 1
    client = tritonclient.http.InferenceServerClient(own.http)
    assert client.is_server_live()  # a client that keeps its connection is served on it
    own.process.send_signal(signal.SIGTERM)
    own.wait_until_logged(r"Signal \(15\) received")

    def refused() -> bool:
        stream.send(model, 2, 1, start=True, end=True)
        ((name, text),) = stream.responses(1)
        assert name is not None or "has stopped accepting new inference requests" in text
        return name is None

    own.wait(refused, "no new sequence begins")
    stream.send(model, 1, 2)
    with client:
        assert stream.responses(1) == [("1: 2", [3, 0, 0])]
        assert infer_step(tritonclient.http, client, model, 1, 4, end=True) == [7, 0, 1]
    assert own.wait_until_exit() == 0
    stream.close()


@pytest.mark.parametrize("model", ["direct", "oldest"])
def test_an_unloading_model_finishes_its_requests_and_accepts_no_more(
    own: Any, tmp_path: Path, model: str
) -> None:
    stream = Stream(own.grpc)
    stream.send(model, 1, -1, start=True)
    own.wait((tmp_path / "gate.entered").exists, "the first request is being executed")
    stream.send(model, 1, 5)
    own.wait(lambda: waiting(own, model) == 1, "the second one waits")
    with tritonclient.http.InferenceServerClient(own.http) as client:
        client.unload_model(model)
        with pytest.raises(InferenceServerException, match="no available versions"):
            infer_step(tritonclient.http, client, model, 1, 2, end=True)
    (tmp_path / "gate").touch()
    assert stream.responses(2) == [("1: -1", [-1, 0, 0]), ("1: 5", [4, 0, 0])]
    own.wait_until_logged(f"successfully unloaded '{model}'")
    stream.close()


def test_the_delay_scheduler_variable_holds_requests_until_enough_are_queued(
    serve: Any, models: Any, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITONSERVER_DELAY_SCHEDULER", "8")
    write(models, "direct", gate, strategy="direct {}")
    with serve(f"--model-repository={models.path}") as served:
        opened = Stream(served.grpc)
        for sequence in (1, 2, 3, 4):
            opened.send("direct", sequence, 1, start=True)
            opened.send("direct", sequence, 2, end=True)
        assert len(opened.responses(8)) == 8
        opened.close()
        with tritonclient.http.InferenceServerClient(served.http) as client:
            (found,) = client.get_inference_statistics("direct")["model_stats"]
    assert {
        entry["batch_size"]: entry["compute_infer"]["count"] for entry in found["batch_stats"]
    } == {2: 4}
