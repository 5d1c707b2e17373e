"""Implicit states of served models with instances in threads and processes."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tritonpy import SequenceInfo, Tensor
from tritonpy_testing import (
    InferenceServerException,
    InferInput,
    InferRequestedOutput,
    InProcessClient,
    running_server,
)

from .simulated_runner import IDLE_NS, SimulatedRunner, config_text
from .stateful_backends import FAIL, MISSING, WRONG_SHAPE, WRONG_TYPE, Plugin

ROOT = str(Path(__file__).resolve().parents[3])
STRATEGIES = {"direct": "direct {}", "oldest": "oldest { max_candidate_sequences: 4 }"}
ISOLATION = {
    "thread": "",
    "process": 'parameters { key: "isolation" value { string_value: "process" } }',
}
MODES = list(product(STRATEGIES, ISOLATION))
FEW = [("direct", "process"), ("oldest", "thread")]


def config(
    backend: str,
    mode: tuple[str, str],
    state: str = "",
    kind: str = "INT64",
    more: str = "",
    batch: int = 4,
) -> str:
    strategy, isolation = mode
    return f"""
        backend: "{backend}" max_batch_size: {batch}
        input {{ name: "IN" data_type: TYPE_{kind} dims: 1 }}
        output {{ name: "OUT" data_type: TYPE_INT64 dims: 1 }}
        sequence_batching {{
            {STRATEGIES[strategy]} max_sequence_idle_microseconds: 60000000
            state {{ input_name: "OLD" output_name: "NEW" data_type: TYPE_{kind} {state or "dims: 1"} }}
        }}
        {ISOLATION[isolation]} {more}
    """


class Served:
    """Client of one model named `m`."""

    def __init__(self, client: InProcessClient) -> None:
        self._client = client

    def start(
        self, value: Any, sequence: int, batch: bool = True, outputs: Any = None, **flags: bool
    ) -> Any:
        data = np.array(value)
        data = data.reshape(1, -1) if batch else data.reshape(-1)
        kind = "INT64" if data.dtype.kind == "i" else "BYTES"
        tensor = InferInput("IN", list(data.shape), kind).set_data_from_numpy(data)
        requested = outputs and [InferRequestedOutput(name) for name in outputs]
        fields = {f"sequence_{name}": flag for name, flag in flags.items()}
        return self._client.async_infer(
            "m", [tensor], sequence_id=sequence, outputs=requested, **fields
        )

    def infer(self, value: Any, sequence: int = 1, output: str = "OUT", **how: Any) -> Any:
        return self.start(value, sequence, **how).get_result().as_numpy(output).ravel().tolist()


@contextmanager
def serving(repository: Any, text: str) -> Iterator[Served]:
    repository.add("m", text)
    sys.path.append(ROOT)  # lets worker processes import the backends
    try:
        settings = {
            "repositories": [{"url": str(repository.path)}],
            "frontends": {"http": False, "grpc": False, "metrics": False},
        }
        with running_server(settings, [Plugin()]) as server:
            yield Served(InProcessClient(server))
    finally:
        sys.path.remove(ROOT)


@pytest.mark.parametrize("mode", MODES)
def test_sequences_keep_their_own_state(model_repository: Any, mode: tuple[str, str]) -> None:
    with serving(
        model_repository, config("folding", mode, more="instance_group { count: 2 kind: KIND_CPU }")
    ) as served:
        calls = [
            [
                served.start(10 * sequence + turn, sequence, start=turn == 0, end=turn == 5)
                for sequence in range(1, 13)
            ]
            for turn in range(6)
        ]
        totals = [[call.get_result().as_numpy("OUT").item() for call in turn] for turn in calls]
    expected = np.zeros(12, np.int64)
    for turn, found in enumerate(totals):
        expected = expected * 3 + 10 * np.arange(1, 13) + turn
        assert found == expected.tolist()


@pytest.mark.parametrize("mode", FEW)
def test_start_resets_the_state_and_failures_leave_it_unchanged(
    model_repository: Any, mode: tuple[str, str]
) -> None:
    with serving(model_repository, config("folding", mode)) as served:
        assert served.infer(1, start=True) == [1]
        for value, text in (
            (FAIL, "requested failure"),
            (
                WRONG_SHAPE,
                r"model 'm' returned state output 'NEW' with shape \[1,1,1\], its configuration says \[1,1\]",
            ),
            (
                WRONG_TYPE,
                "model 'm' returned state output 'NEW' as FP32, its configuration says INT64",
            ),
            (
                MISSING,
                "model 'm' returned no output 'NEW', it returned: 'OUT'; expected: 'OUT', 'NEW'",
            ),
        ):
            with pytest.raises(InferenceServerException, match=text):
                served.infer(value)
        assert served.infer(2) == [5]
        assert served.infer(7, start=True) == [7]
        assert served.infer(1, end=True) == [22]


@pytest.mark.parametrize("mode", FEW)
def test_a_state_is_returned_if_it_is_a_requested_output(
    model_repository: Any, mode: tuple[str, str]
) -> None:
    more = 'output { name: "NEW" data_type: TYPE_INT64 dims: 1 }'
    with serving(model_repository, config("folding", mode, more=more)) as served:
        assert served.infer(1, start=True, outputs=["NEW"], output="NEW") == [1]
        assert served.infer(2, outputs=["OUT"]) == [5]
        assert served.infer(3, output="NEW", end=True) == [18]


def test_a_state_that_is_not_an_output_cannot_be_requested(model_repository: Any) -> None:
    text = "unexpected inference output 'NEW' for model 'm'"
    with (
        serving(model_repository, config("folding", MODES[0])) as served,
        pytest.raises(InferenceServerException, match=text),
    ):
        served.infer(1, start=True, outputs=["NEW"])


@pytest.mark.parametrize("mode", FEW)
@pytest.mark.parametrize("batch", [4, 0])
def test_string_states_grow(model_repository: Any, mode: tuple[str, str], batch: int) -> None:
    """Sequences whose states differ in size do not share a batch."""
    more = 'output { name: "NEW" data_type: TYPE_STRING dims: -1 }'
    batched = batch > 0
    with serving(
        model_repository, config("collecting", mode, "dims: -1", "STRING", more, batch)
    ) as served:
        calls = {
            (turn, sequence): served.start(
                text(f"{sequence} {turn}"), sequence, batched, start=turn == 0, end=turn == sequence
            )
            for turn in range(4)
            for sequence in range(1, 4)
            if turn <= sequence
        }
        found = {
            place: call.get_result().as_numpy("NEW").ravel().tolist()
            for place, call in calls.items()
        }
    assert found == {
        (turn, sequence): [b"", *(f"{sequence} {before}".encode() for before in range(turn + 1))]
        for turn, sequence in calls
    }


def text(value: str) -> Any:
    return np.array([value], object)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_buffer_is_written_in_place(model_repository: Any, strategy: str) -> None:
    more = "".join(
        f'output {{ name: "{name}" data_type: TYPE_INT64 dims: 1 }}' for name in ("NEW", "AT")
    )
    state = "dims: 1 use_same_buffer_for_input_output: true"
    with serving(
        model_repository, config("in_place", (strategy, "thread"), state, more=more)
    ) as served:
        calls = [served.start(1, 1, start=turn == 0, end=turn == 19) for turn in range(20)]
        results = [call.get_result() for call in calls]
    totals = [(3**turn - 1) // 2 for turn in range(1, 21)]
    assert len({result.as_numpy("AT").item() for result in results}) == 1
    for name in ("OUT", "NEW"):  # although unread responses were next to the buffer
        assert [result.as_numpy(name).item() for result in results] == totals


@pytest.mark.parametrize("mode", FEW)
def test_one_buffer_serves_several_sequences(model_repository: Any, mode: tuple[str, str]) -> None:
    state = "dims: 1 use_same_buffer_for_input_output: true"
    with serving(model_repository, config("folding", mode, state)) as served:
        for turn, total in enumerate((1, 4, 13)):
            flags = {"start": turn == 0, "end": turn == 2}
            calls = [served.start(sequence, sequence, **flags) for sequence in range(1, 5)]
            assert [call.get_result().as_numpy("OUT").item() for call in calls] == [
                total * each for each in range(1, 5)
            ]


@pytest.mark.parametrize("mode", FEW)
def test_a_sequence_begins_with_the_state_from_a_file(
    model_repository: Any, mode: tuple[str, str]
) -> None:
    initial = 'dims: 1 initial_state { name: "i" data_type: TYPE_INT64 dims: 1 data_file: "seven" }'
    folder = model_repository.path / "m" / "initial_state"
    folder.mkdir(parents=True)
    (folder / "seven").write_bytes(np.array([7], np.int64).tobytes())
    with serving(model_repository, config("folding", mode, initial)) as served:
        assert [served.infer(1, start=turn == 0, end=turn == 1) for turn in range(2)] == [
            [22],
            [67],
        ]
        assert served.infer(2, start=True, end=True) == [23]


@pytest.mark.parametrize("mode", FEW)
def test_iterations_of_an_iterative_sequence_pass_on_their_states(
    model_repository: Any, mode: tuple[str, str]
) -> None:
    text = config("counting", mode).replace(
        "sequence_batching {", "sequence_batching { iterative_sequence: true"
    )
    with serving(model_repository, text) as served:
        calls = [served.start(count, 0) for count in (5, 1, 8, 3, 2, 7)]
        assert [call.get_result().as_numpy("OUT").item() for call in calls] == [5, 1, 8, 3, 2, 7]


STATE = 'state { input_name: "S" output_name: "T" data_type: TYPE_INT32 dims: 1 }'


def state_references(runner: SimulatedRunner) -> list[weakref.ref[Any]]:
    """Run three sequences with a state each. Return weak references to the states."""
    for sequence in (1, 2, 3):
        runner.send(sequence, start=True)
    batch = runner.take()
    batch.new_states["T"] = Tensor.from_numpy("T", np.array([[1], [2], [3]], np.int32))
    runner.complete()
    found = []
    for sequence in (1, 2, 3):
        runner.send(sequence)
        batch = runner.take()
        found.append(weakref.ref(batch.states[0].data))
        runner.complete()
    return found


def is_gone(runner: SimulatedRunner, states: list[weakref.ref[Any]]) -> bool:
    for one in runner.requests:
        one.batch = None
    runner.ran.clear()
    gc.collect()
    return not any(state() is not None for state in states)


def test_the_states_of_an_ended_sequence_are_released() -> None:
    """A sequence loses its state by its end, by idleness or by START."""
    runner = SimulatedRunner(config_text("oldest { max_candidate_sequences: 4 }", more=STATE))
    states = state_references(runner)
    assert not is_gone(runner, states)
    runner.send(1, end=True)
    runner.run()
    runner.send(2, start=True)
    runner.run()
    assert is_gone(runner, states[:2])
    assert not is_gone(runner, states[2:])
    runner.advance(2 * IDLE_NS)
    assert is_gone(runner, states)


def test_new_sequences_share_a_batch_only_with_states_of_equal_size() -> None:
    varying = STATE.replace("dims: 1", "dims: -1")
    runner = SimulatedRunner(config_text("oldest { max_candidate_sequences: 4 }", more=varying))
    runner.send(1, start=True)
    batch = runner.take()
    batch.new_states["T"] = Tensor.from_numpy("T", np.array([[1, 2]], np.int32))
    runner.complete()
    for sequence, start in ((1, False), (2, True), (3, True)):
        runner.send(sequence, start)
    assert [[each.sequence for each in runner.take().requests] for _ in range(2)] == [
        [SequenceInfo(1)],
        [SequenceInfo(2, start=True), SequenceInfo(3, start=True)],
    ]
