from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from plugins.workers.tests.backend_process.wire import Wire
from tritonpy.api.engine import MemoryUsage
from tritonpy_ipc import Kind
from tritonpy_ipc.waiter import Waiter
from tritonpy_types.errors import Unavailable
from tritonpy_workers.backend_process.instance_rpc_server import InstanceRpcServer


@pytest.fixture
def wire() -> Iterator[Wire]:
    wire = Wire()
    yield wire
    wire.close()


def raising(error: Exception) -> Callable[[], object]:
    def answer() -> object:
        raise error

    return answer


def reply(wire: Wire, verb: str, **arguments: int) -> dict[str, Any]:
    """Send a query to the worker, which reads in this thread, and return the result."""
    read: list[bool] = []
    wire.channel.on(Kind.CANCEL, lambda _: read.append(True))
    wire.send(Kind.QUERY, [5], extras={"verb": verb, "arguments": arguments})
    wire.send(Kind.CANCEL, [0])
    wire.channel.wait(Waiter(), read.__len__)
    frame = wire.next()
    assert (frame.kind, frame.words) == (Kind.QUERY_RESULT, (5,))
    return frame.extras


@pytest.mark.parametrize(
    ("answer", "payload"),
    [
        (lambda: True, {"value": True}),
        (
            lambda: [MemoryUsage("GPU", 1, 2**40)],
            {"value": [{"type": "GPU", "id": 1, "byte_size": 2**40}]},
        ),
        (raising(Unavailable("still warming up")), {"error": [4, "still warming up"]}),
        (raising(ValueError()), {"error": [1, "ValueError"]}),
    ],
)
def test_known_queries_are_executed(
    wire: Wire, answer: Callable[[], object], payload: dict[str, Any]
) -> None:
    InstanceRpcServer(wire.channel, {"other": list, "query": answer})
    assert reply(wire, "query") == payload


def test_a_query_has_arguments(wire: Wire) -> None:
    InstanceRpcServer(wire.channel, {"double": lambda number: 2 * number})
    assert reply(wire, "double", number=4) == {"value": 8}


def test_unknown_queries_are_refused(wire: Wire) -> None:
    InstanceRpcServer(wire.channel, {"one": list, "other": list})
    assert reply(wire, "meaning") == {
        "error": [5, "workers support only the queries one and other"]
    }
