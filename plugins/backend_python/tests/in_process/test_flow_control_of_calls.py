"""A model that iterates slowly throttles the model that it called, in any process."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tritonpy import InferRequest
from tritonpy_ipc.windows import MAX_RESPONSES
from tritonpy_testing import RecordingSink, RunningServer

from ..serving import wait_for
from .modes import (
    DECOUPLED,
    MODES,
    PLAN,
    planned,
    query,
    serving,
    values_of,
    write_in,
    write_planned,
)

CHILD = """
FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL

def execute(self, requests):
    for request in requests:
        path, count = json.loads(pb_utils.get_input_tensor_by_name(request, "PLAN").as_numpy()[0])
        progress, sender = np.memmap(path, np.int64, "r+", shape=2), request.get_response_sender()
        for number in range(count):
            if sender.is_cancelled():
                break
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([str(number).encode()], object))]))
            progress[0] = number + 1
        sender.send(flags=self.FINAL)
        progress[1] = 1
"""
PARENT = """
PAUSE_S = 0.05  # makes the iteration slow

def stream(self, child, path, count):
    given = pb_utils.Tensor("PLAN", np.array([json.dumps([path, count]).encode()], object))
    return pb_utils.InferenceRequest(model_name=child, inputs=[given], requested_output_names=["OUT"]).exec(decoupled=True)

def do_slowly(self, request, child, path, count, pauses):
    progress, taken, lead = np.memmap(path, np.int64, "r", shape=2), 0, 0
    for response in self.stream(child, path, count):
        taken += len(response.output_tensors())
        if taken == 1:  # no flow control yet: the child gets far ahead by itself
            self.let_run(progress, MAX_RESPONSES)
        if taken % (count // pauses) == 0:
            time.sleep(self.PAUSE_S)
        lead = max(lead, int(progress[0]) - taken)
    return [taken, lead]

def let_run(self, progress, least):
    while progress[0] < least:
        time.sleep(0.001)
    time.sleep(self.PAUSE_S)

def do_cancel(self, request, child, path, count):
    stream = self.stream(child, path, count)
    next(stream)
    self.let_run(np.memmap(path, np.int64, "r", shape=2), 64)
    stream.cancel()
    return sum(1 for _ in stream) < count // 10

def do_drop(self, request, child, path, count):
    stream = self.stream(child, path, count)
    next(stream)
    self.let_run(np.memmap(path, np.int64, "r", shape=2), 64)

def do_wait(self, request, child, path, count):
    stream = self.stream(child, path, count)
    next(stream)
    while not request.is_cancelled():
        time.sleep(0.001)
    return sum(1 for _ in stream) < count // 10

def do_by_turns(self, request, child, one, other, count):
    streams = [self.stream(child, path, count) for path in (one, other)]
    return [sum(len(each.output_tensors()) for each in responses) for responses in zip(*streams)].count(2)

def do_twice(self, request, child, path, count):
    stream = self.stream(child, path, count)
    list(stream)
    return len(list(stream))
""".replace("MAX_RESPONSES", str(MAX_RESPONSES))
# Responses in flight in addition to those that wait for the caller: a window of the child's worker,
# and one more.
MOST_AHEAD = 2 * MAX_RESPONSES + 2
MANY = 100_000
CHILDREN = {f"child_{mode}": mode for mode in MODES}
PAIRS = list(product(MODES, CHILDREN))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    repository = tmp_path_factory.mktemp("calls")
    for child, mode in CHILDREN.items():
        write_in(mode, repository, child, CHILD, PLAN + DECOUPLED)
    for mode in MODES:
        write_planned(mode, repository, mode, PARENT)
    with serving(repository) as server:
        yield server


@pytest.fixture
def progress(tmp_path: Path) -> np.memmap[Any, Any]:
    return np.memmap(tmp_path / "progress", np.int64, "w+", shape=2)


def over(progress: np.memmap[Any, Any]) -> None:
    wait_for(lambda: progress[1])


@pytest.mark.parametrize(("parent", "child"), PAIRS)
def test_a_fast_child_is_never_far_ahead(
    server: RunningServer, parent: str, child: str, progress: Any
) -> None:
    taken, lead = query(server, parent, "slowly", child, str(progress.filename), 2_000, 4)
    assert (taken, MAX_RESPONSES // 2 <= lead <= MOST_AHEAD) == (2_000, True), lead


def test_few_of_many_responses_are_in_memory(server: RunningServer, progress: Any) -> None:
    recorder = RecordingSink()
    plan = planned("slowly", "child_m_process", str(progress.filename), MANY, 2)
    request = InferRequest("m_process", plan, recorder.sink)
    server.engine.infer(request)
    ((taken, lead),) = values_of(recorder.wait(request, timeout_s=300)[0], "m_process")
    assert (taken, lead <= MOST_AHEAD) == (MANY, True), lead


@pytest.mark.parametrize(("parent", "child"), PAIRS)
def test_a_throttled_child_can_be_cancelled(
    server: RunningServer, parent: str, child: str, progress: Any
) -> None:
    assert query(server, parent, "cancel", child, str(progress.filename), MANY) is True
    over(progress)
    assert progress[0] <= MOST_AHEAD


@pytest.mark.parametrize(("parent", "child"), PAIRS)
def test_a_child_with_a_deleted_iterator_runs_to_its_end(
    server: RunningServer, parent: str, child: str, progress: Any
) -> None:
    assert query(server, parent, "drop", child, str(progress.filename), 5_000) is None
    over(progress)
    assert progress[0] == 5_000


@pytest.mark.parametrize(("parent", "child"), PAIRS)
def test_the_end_of_the_parents_request_ends_a_throttled_child(
    server: RunningServer, parent: str, child: str, progress: Any
) -> None:
    recorder = RecordingSink()
    request = InferRequest(
        parent, planned("wait", child, str(progress.filename), MANY), recorder.sink
    )
    server.engine.infer(request)
    wait_for(lambda: progress[0] >= MAX_RESPONSES)
    request.cancel()
    assert values_of(recorder.wait(request)[0], parent) == [True]
    over(progress)
    assert progress[0] <= MOST_AHEAD


@pytest.mark.parametrize(("parent", "child"), PAIRS)
def test_two_streams_of_one_instance_can_be_read_alternately(
    server: RunningServer, parent: str, child: str, progress: Any, tmp_path: Path
) -> None:
    other = np.memmap(tmp_path / "other", np.int64, "w+", shape=2)
    assert (
        query(server, parent, "by_turns", child, str(progress.filename), str(other.filename), 2_000)
        == 2_000
    )


@pytest.mark.parametrize("parent", MODES)
def test_a_stream_that_is_too_long_to_keep_can_be_iterated_once(
    server: RunningServer, parent: str, progress: Any
) -> None:
    assert query(server, parent, "twice", "child_m_thread", str(progress.filename), 4_000) == 4_001
    _, text = query(server, parent, "twice", "child_m_thread", str(progress.filename), 5_000)
    assert "More than 4096 responses, or 16 MiB, can only be iterated once." in text
