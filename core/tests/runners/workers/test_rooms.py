from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from tritonpy.runners.workers.rooms import Rooms, RoomSaid
from tritonpy.types import InferRequest, Sink


class FullSink(Sink):
    """Has no room until it is told."""

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
        self.rooms = Rooms(asyncio.get_running_loop(), SimpleNamespace(open={7: self.request}))

    def wait(self, number: int = 7):
        return self.rooms.wait(RoomSaid(number))


def run(scenario: Callable[[], object]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 10))


def test_where_there_is_room_or_no_request_nobody_waits():
    async def scenario():
        bench = Bench()
        assert bench.wait(8) is None
        bench.sink.full = False
        assert bench.wait() is None

    run(scenario)


def test_the_answer_comes_when_there_is_room_from_whatever_thread():
    async def scenario():
        bench = Bench()
        room = bench.wait()
        assert not room.done()
        await asyncio.to_thread(bench.sink.call)
        await room
        bench.sink.call()  # a second word is nobody's

    run(scenario)


@pytest.mark.parametrize("before", [True, False])
def test_a_cancelled_request_waits_for_nobody(before):
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


def test_a_worker_that_is_to_end_waits_for_nobody():
    async def scenario():
        bench = Bench()
        first, second = bench.wait(), bench.wait()
        bench.rooms.release()
        await asyncio.gather(first, second)
        assert bench.wait() is None

    run(scenario)


def test_a_word_after_the_end_of_the_loop_harms_nobody():
    benches = []

    async def scenario():
        benches.append(Bench())
        benches[0].wait()

    run(scenario)
    benches[0].sink.call()
