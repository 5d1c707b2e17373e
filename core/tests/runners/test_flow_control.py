"""Flow control of a decoupled backend, in a thread and in a worker process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.tests.toys.isolated import ISOLATED, FlowControlledBackend, isolating
from core.tests.toys.serving import ToyPlugin, config_of, numbers, request_of
from tritonpy_ipc.windows import MAX_RESPONSES
from tritonpy_testing import RecordingSink, RunningServer, SlowClient
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_types import InferRequest

DECOUPLED = "model_transaction_policy { decoupled: true }"
ROOM = 8
MANY = 1000
# Responses in flight beyond those that wait for the client.
IN_FLIGHT = {"thread": 0, "process": MAX_RESPONSES}


@pytest.fixture(params=["thread", "process"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(model_repository: ModelRepository, mode: str) -> Iterator[RunningServer]:
    more = DECOUPLED + (ISOLATED if mode == "process" else "")
    model_repository.add("considerate", config_of("considerate", instances=2, more=more))
    with isolating(model_repository, ToyPlugin({"considerate": FlowControlledBackend})) as server:
        yield server


def stream(server: RunningServer, client: SlowClient, count: int) -> InferRequest:
    request = request_of(RecordingSink(), "considerate", [count], accepts_decoupled=True)
    request.sink = client
    server.engine.infer(request)
    return request


def test_a_client_that_fetches_gets_everything_in_order(server: RunningServer) -> None:
    client = SlowClient(ROOM)
    stream(server, client, MANY)
    assert numbers(client.fetch_all()) == [[number] for number in range(MANY)]


def test_a_slow_client_blocks_only_its_own_stream(server: RunningServer, mode: str) -> None:
    slow, quick = SlowClient(ROOM), SlowClient(ROOM)
    stream(server, slow, MANY)
    slow.wait_until_full()
    stream(server, quick, MANY)
    assert len(quick.fetch_all()) == MANY + 1
    assert ROOM <= slow.most <= ROOM + IN_FLIGHT[mode]
    assert numbers(slow.fetch_all()) == [[number] for number in range(MANY)]


@pytest.mark.parametrize("leaves", [False, True])
def test_a_cancellation_frees_the_instance_that_waits(server: RunningServer, leaves: bool) -> None:
    clients = [SlowClient(ROOM) for _ in range(3)]
    first, *_ = [stream(server, client, MANY) for client in clients]
    clients[0].wait_until_full()
    clients[1].wait_until_full()
    assert clients[2].flow_control.responses == 0  # both instances wait for their clients
    if leaves:
        clients[0].leave(first)
    else:
        first.cancel()
    assert len(clients[2].fetch_all()) == MANY + 1
    assert first.finished
    assert len(clients[1].fetch_all()) == MANY + 1
