"""Flow control of decoupled models, in a worker and in the server's process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tritonpy import InferRequest
from tritonpy_ipc.windows import MAX_RESPONSES
from tritonpy_testing import RunningServer, SlowClient

from .modes import DECOUPLED, MODES, PLAN, both, planned, values_of

METHODS = """
FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL

def stream(self, request, count):
    sender = request.get_response_sender()
    for number in range(count):
        if sender.is_cancelled():
            break
        sender.send(self.answer(number))
    sender.send(flags=self.FINAL)

def do_execute(self, request, count):
    self.stream(request, count)

def do_thread(self, request, count):
    threading.Thread(target=self.stream, args=(request, count)).start()

def execute(self, requests):
    for request in requests:
        name, *arguments = self.plan(request)
        getattr(self, "do_" + name)(request, *arguments)
"""
COROUTINES = """
FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL

async def execute(self, requests):
    await asyncio.gather(*[self.stream(request, *self.plan(request)[1:]) for request in requests])

async def stream(self, request, count):
    sender = request.get_response_sender()
    for number in range(count):
        if sender.is_cancelled():
            break
        sender.send(self.answer(number))
        await asyncio.sleep(0)
    sender.send(flags=self.FINAL)
"""
ROOM, MANY = 8, 500
EVERYTHING = [*range(MANY), "end"]
# Responses in flight in addition to those that wait for the client. A coroutine waits one response
# later.
IN_FLIGHT = {"m_process": MAX_RESPONSES + 1, "m_thread": 1}


@pytest.fixture(scope="module")
def threads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with both(tmp_path_factory.mktemp("threads"), METHODS, PLAN + DECOUPLED) as server:
        yield server


@pytest.fixture(scope="module")
def coroutines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with both(tmp_path_factory.mktemp("coroutines"), COROUTINES, PLAN + DECOUPLED) as server:
        yield server


@pytest.fixture(params=["execute", "thread", "coroutine"])
def how(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(how: str, threads: RunningServer, coroutines: RunningServer) -> RunningServer:
    return coroutines if how == "coroutine" else threads


def stream(server: RunningServer, model: str, how: str, client: SlowClient) -> InferRequest:
    request = InferRequest(model, planned(how, MANY), client, accepts_decoupled=True)
    server.engine.infer(request)
    return request


@pytest.mark.parametrize("model", MODES)
def test_a_client_gets_all_responses_in_order(server: RunningServer, model: str, how: str) -> None:
    client = SlowClient(ROOM)
    stream(server, model, how, client)
    assert values_of(client.fetch_all(), model) == EVERYTHING


@pytest.mark.parametrize("model", MODES)
def test_a_slow_client_only_blocks_its_own_stream(
    server: RunningServer, model: str, how: str
) -> None:
    slow = SlowClient(ROOM)
    stream(server, model, how, slow)
    slow.wait_until_full()
    if how != "execute":  # there the only instance is blocked
        quick = SlowClient(ROOM)
        stream(server, model, how, quick)
        assert values_of(quick.fetch_all(), model) == EVERYTHING
    assert values_of(slow.fetch_all(), model) == EVERYTHING
    assert slow.most <= ROOM + IN_FLIGHT[model]


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize("model", MODES)
def test_cancelling_a_blocked_stream_releases_it(
    server: RunningServer, model: str, how: str, leaves: bool
) -> None:
    slow, next_one = SlowClient(ROOM), SlowClient(ROOM)
    request = stream(server, model, how, slow)
    slow.wait_until_full()
    stream(server, model, how, next_one)
    if leaves:
        slow.leave(request)
    else:
        request.cancel()
    assert values_of(next_one.fetch_all(), model) == EVERYTHING
    last = slow.fetch_all()[-1]
    assert (last.empty, len(EVERYTHING) > slow.most) == (True, True)
