from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from core.tests.runners.workers.backend_process.wire import Wire
from tritonpy.api.engine import MemoryUsage
from tritonpy.errors import Unavailable
from tritonpy.ipc import Kind
from tritonpy.ipc.waiter import Waiter
from tritonpy.runners.workers.backend_process.questioned import Questioned


@pytest.fixture
def wire() -> Iterator[Wire]:
    wire = Wire()
    yield wire
    wire.close()


def raising(error: Exception) -> Callable[[], object]:
    def answer() -> object:
        raise error

    return answer


def reply(wire: Wire, verb: str) -> dict[str, Any]:
    """Ask the worker, which reads in this thread, and return what it says."""
    read: list[bool] = []
    wire.channel.on(Kind.CANCEL, lambda _: read.append(True))
    wire.send(Kind.ASK, [5], extras={"verb": verb, "arguments": {}})
    wire.send(Kind.CANCEL, [0])
    wire.channel.wait(Waiter(), read.__len__)
    frame = wire.next()
    assert (frame.kind, frame.words) == (Kind.REPLY, (5,))
    return frame.extras


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda: True, {"value": True}),
        (lambda: [MemoryUsage("GPU", 1, 2**40)], {"value": [{"type": "GPU", "id": 1, "byte_size": 2**40}]}),
        (raising(Unavailable("still warming up")), {"error": [4, "still warming up"]}),
        (raising(ValueError()), {"error": [1, "ValueError"]}),
    ],
)
def test_whoever_knows_is_asked(wire: Wire, answer: Callable[[], object], said: dict[str, Any]) -> None:
    Questioned(wire.channel, {"other": list, "question": answer})
    assert reply(wire, "question") == said


def test_other_questions_are_refused(wire: Wire) -> None:
    Questioned(wire.channel, {"one": list, "other": list})
    assert reply(wire, "meaning") == {"error": [5, "workers answer one and other alone"]}
