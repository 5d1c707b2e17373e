from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from core.tests.toys.doubler import Doubler, Gate, gated
from core.tests.toys.isolated import ROOT
from plugins.workers.tests.backend_process.wire import WAIT_S, Wire, context
from tritonpy_ipc import Frame, Kind
from tritonpy_ipc.progress import Progress
from tritonpy_types import Tensor
from tritonpy_types.errors import Code, InvalidArgument, Unavailable
from tritonpy_workers.backend_process import SpawnLauncher


class Launched:
    """A real process that doubles its input, and the frames that it sends."""

    def __init__(self, **payload: Any) -> None:
        model, instance = context()
        self._launcher = SpawnLauncher(model, Doubler)
        self.wire = Wire()
        self._output = os.open(os.devnull, os.O_WRONLY)
        self.process = self._launcher.launch(instance, self.wire.theirs, self._output)
        self.wire.theirs.close()
        message = {**self._launcher.start_message(instance), **payload}
        self.wire.send(Kind.START, extras=message, descriptors=(Progress.create(),))

    def next(self, kind: int) -> Frame:
        frame = self.wire.next()
        assert frame.kind == kind, (frame.kind, frame.extras)
        return frame

    def close(self) -> None:
        self.process.kill()
        self.process.wait(WAIT_S)
        self.wire.close()
        os.close(self._output)


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.fixture
def launched() -> Iterator[Launched]:
    launched = Launched()
    yield launched
    launched.close()


def test_a_process_starts_executes_and_stops(launched: Launched) -> None:
    payload = launched.next(Kind.STARTED).extras
    assert payload == {
        "pid": launched.process.pid,
        "max_open": None,
        "has_ready_check": False,
        "reports_memory": False,
        "takes_log_level": True,
        "unbound": "",
    }
    launched.wire.send(
        Kind.EXECUTE, [1, 7, 1, 0], rows=[[Tensor.from_numpy("IN", np.array([4], np.int32))]]
    )
    answered = launched.wire.next_responses()
    assert (answered.rows, answered.done[0][0]) == ([{"OUT": [8]}], 7)
    launched.wire.send(Kind.STOP)
    launched.next(Kind.STOPPED)
    assert launched.process.wait(WAIT_S) == 0


def test_queued_executions_run_before_it_stops(launched: Launched) -> None:
    launched.next(Kind.STARTED)
    rows = [[Tensor.from_numpy("IN", np.array([number + 100], np.int32))] for number in range(20)]
    words = [20, *(word for number in range(20) for word in (number + 1, 1)), 0]
    launched.wire.send(Kind.EXECUTE, words, rows=rows)
    launched.wire.send(Kind.STOP)
    done: list[int] = []
    answered: list[Any] = []
    while len(done) < 20:
        frame = launched.wire.next_responses()
        done += [number for number, _, _ in frame.done]
        answered += frame.rows
    assert done == list(range(1, 21))
    launched.next(Kind.STOPPED)


def test_shared_memory_of_the_server_is_returned_with_the_response(launched: Launched) -> None:
    launched.next(Kind.STARTED)
    large = Tensor.from_numpy("IN", np.arange(100, 100 + (1 << 16), dtype=np.int32))
    fresh = 0
    for number in range(5):
        fresh += launched.wire.send(Kind.EXECUTE, [1, number + 1, 1, number], rows=[[large]])
        assert launched.wire.next_responses().rows[0]["OUT"][-1] == 2 * (99 + (1 << 16))
    assert fresh == 1


def test_another_version_of_the_protocol_is_refused() -> None:
    launched = Launched(version=99)
    payload = launched.next(Kind.FAILED).extras
    assert payload["code"] == Code.INTERNAL
    assert "was tritonpy replaced while the server ran?" in payload["message"]
    assert launched.process.wait(WAIT_S) == 1
    launched.close()


def test_a_class_that_cannot_be_imported_is_refused_immediately() -> None:
    with pytest.raises(InvalidArgument, match="cannot run in a process of its own"):
        SpawnLauncher(context()[0], gated(Gate()))


def test_an_unknown_interpreter_path_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    model, instance = context()
    wire = Wire()
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(Unavailable, match="the path of the Python interpreter is unknown"):
        SpawnLauncher(model, Doubler).launch(instance, wire.theirs, 2)
    wire.close()
