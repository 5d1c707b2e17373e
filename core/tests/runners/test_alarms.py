from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable

import pytest

from tritonpy.clock import now_ns
from tritonpy.runners import alarms as module
from tritonpy.runners.alarms import Alarms
from tritonpy.runners.rings import Rings

FAR = 1 << 61


def on_a_loop(play: Callable[[Alarms], object]) -> None:
    async def turn() -> None:
        alarms = Alarms(asyncio.get_running_loop())
        try:
            await play(alarms)
        finally:
            alarms.close()

    asyncio.run(asyncio.wait_for(turn(), 30))


def test_callbacks_run_in_the_order_of_their_times() -> None:
    seen: list[str] = []

    async def play(alarms: Alarms) -> None:
        done, due = asyncio.Event(), now_ns() + 2_000_000
        alarms.at(due + 2, done.set)
        alarms.at(due + 1, lambda: seen.append("second"))
        alarms.at(due, lambda: seen.append("first"))
        await done.wait()
        assert seen == ["first", "second"]

    on_a_loop(play)


@pytest.mark.parametrize("wait_ns", [-FAR, 0, 300_000, 5_000_000])
def test_none_runs_before_its_time_and_each_on_the_thread_of_the_loop(wait_ns: int) -> None:
    async def play(alarms: Alarms) -> None:
        called, due = asyncio.get_running_loop().create_future(), now_ns() + wait_ns
        alarms.at(due, lambda: called.set_result(now_ns()))
        assert not called.done()
        assert await called >= due

    on_a_loop(play)


def test_an_earlier_time_comes_first_whatever_was_set_before() -> None:
    async def play(alarms: Alarms) -> None:
        called, late = asyncio.Event(), list[int]()
        alarms.at(now_ns() + FAR, lambda: late.append(1))
        alarms.at(now_ns(), called.set)
        await called.wait()
        assert not late

    on_a_loop(play)


def test_a_callback_may_set_the_next_one() -> None:
    async def play(alarms: Alarms) -> None:
        called = asyncio.Event()
        alarms.at(now_ns(), lambda: alarms.at(now_ns() + 100_000, called.set))
        await called.wait()

    on_a_loop(play)


def test_one_that_raises_does_not_silence_the_others() -> None:
    async def play(alarms: Alarms) -> None:
        called, told = asyncio.Event(), list[object]()
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
        fault = RuntimeError("a fault")

        def raises() -> None:
            raise fault

        due = now_ns()
        alarms.at(due, raises)
        alarms.at(due + 1, called.set)
        await called.wait()
        assert told == [fault]

    on_a_loop(play)


def test_what_is_not_due_at_the_end_is_called_then_and_no_file_stays() -> None:
    called: list[int] = []
    files: list[set[str]] = []

    async def play() -> None:
        files.append(set(os.listdir("/proc/self/fd")))
        alarms = Alarms(asyncio.get_running_loop())
        alarms.at(now_ns() + FAR, lambda: called.append(1))
        alarms.close()
        files.append(set(os.listdir("/proc/self/fd")))

    asyncio.run(play())
    assert called == [1]
    assert files[0] == files[1]


def test_rings_have_alarms_on_their_loop_alone_and_until_it_goes() -> None:
    rings, rung = Rings(), list[str]()
    assert not rings.at(0, lambda: rung.append("no loop"))

    async def turn() -> None:
        rings.attach(asyncio.get_running_loop())
        assert not await asyncio.to_thread(rings.at, 0, lambda: rung.append("elsewhere"))
        called = asyncio.Event()
        assert rings.at(now_ns(), called.set)
        await called.wait()
        assert rings.at(now_ns() + FAR, lambda: rung.append("left"))
        rings.detach()
        assert not rings.at(0, lambda: rung.append("gone"))

    asyncio.run(turn())
    assert rung == ["left"]


@pytest.mark.parametrize("lacks", ["the function", "files"])
def test_where_the_system_has_no_such_timers_somebody_else_has_to_call(
    lacks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Library:
        def __init__(self) -> None:
            if lacks == "files":
                self.timerfd_create = self.refuse

        @staticmethod
        def refuse(_clock: int, _flags: int) -> int:
            ctypes.set_errno(24)
            return -1

    monkeypatch.setattr(module, "_LIBRARY", Library())
    rings = Rings()

    async def turn() -> None:
        rings.attach(asyncio.get_running_loop())
        assert not rings.at(0, lambda: None)
        assert not rings.at(0, lambda: None)
        rings.detach()

    asyncio.run(turn())
