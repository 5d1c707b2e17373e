from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from tritonpy_types import InferRequest, Sink
from tritonpy_workers.stream_credits import CreditMessage, StreamCredits


class FullSink(Sink):
    """Has no capacity until the test says so."""

    def __init__(self) -> None:
        self.full = True
        self.waiting: list[Callable[[], None]] = []

    def put(self, request, response) -> None:
        raise AssertionError

    def ready(self, request) -> bool:
        return not self.full

    def when_ready(self, request, callback) -> None:
        self.waiting.append(callback)

    def cancelled(self, request) -> None:
        self.call()

    def call(self) -> None:
        for callback in self.waiting:
            callback()


class Bench:
    def __init__(self) -> None:
        self.sink = FullSink()
        self.request = InferRequest("m", {}, self.sink)
        self.credits = StreamCredits(
            asyncio.get_running_loop(), SimpleNamespace(open={7: self.request})
        )

    def wait(self, number: int = 7):
        return self.credits.wait(CreditMessage(number))


def run(scenario: Callable[[], object]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 10))


def test_credit_is_granted_immediately_with_capacity_or_without_a_request():
    async def scenario():
        bench = Bench()
        assert bench.wait(8) is None
        bench.sink.full = False
        assert bench.wait() is None

    run(scenario)


def test_credit_is_granted_when_any_thread_frees_capacity():
    async def scenario():
        bench = Bench()
        room = bench.wait()
        assert not room.done()
        await asyncio.to_thread(bench.sink.call)
        await room
        bench.sink.call()  # a second call is ignored

    run(scenario)


@pytest.mark.parametrize("before", [True, False])
def test_a_cancelled_request_gets_credit_immediately(before):
    async def scenario():
        bench = Bench()
        if before:
            bench.request.cancel()
            assert bench.wait() is None
        else:
            room = bench.wait()
            await asyncio.to_thread(bench.request.cancel)
            await room

    run(scenario)


def test_a_stopping_worker_gets_credit_immediately():
    async def scenario():
        bench = Bench()
        first, second = bench.wait(), bench.wait()
        bench.credits.release()
        await asyncio.gather(first, second)
        assert bench.wait() is None

    run(scenario)


def test_a_grant_after_the_end_of_the_loop_is_ignored():
    benches = []

    async def scenario():
        benches.append(Bench())
        benches[0].wait()

    run(scenario)
    benches[0].sink.call()
