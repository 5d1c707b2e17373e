from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable

import pytest

from tritonpy.runners import wakeups as module
from tritonpy.runners.wakeups import LoopTimers, Wakeups
from tritonpy_types.clock import now_ns

FAR = 1 << 61


def on_a_loop(play: Callable[[LoopTimers], object]) -> None:
    async def turn() -> None:
        timers = LoopTimers(asyncio.get_running_loop())
        try:
            await play(timers)
        finally:
            timers.close()

    asyncio.run(asyncio.wait_for(turn(), 30))


def test_callbacks_run_in_the_order_of_their_times() -> None:
    seen: list[str] = []

    async def play(timers: LoopTimers) -> None:
        done, due = asyncio.Event(), now_ns() + 2_000_000
        timers.at(due + 2, done.set)
        timers.at(due + 1, lambda: seen.append("second"))
        timers.at(due, lambda: seen.append("first"))
        await done.wait()
        assert seen == ["first", "second"]

    on_a_loop(play)


@pytest.mark.parametrize("wait_ns", [-FAR, 0, 300_000, 5_000_000])
def test_none_runs_before_its_time_and_each_on_the_thread_of_the_loop(wait_ns: int) -> None:
    async def play(timers: LoopTimers) -> None:
        called, due = asyncio.get_running_loop().create_future(), now_ns() + wait_ns
        timers.at(due, lambda: called.set_result(now_ns()))
        assert not called.done()
        assert await called >= due

    on_a_loop(play)


def test_an_earlier_time_comes_first_whatever_was_set_before() -> None:
    async def play(timers: LoopTimers) -> None:
        called, late = asyncio.Event(), list[int]()
        timers.at(now_ns() + FAR, lambda: late.append(1))
        timers.at(now_ns(), called.set)
        await called.wait()
        assert not late

    on_a_loop(play)


def test_a_callback_may_set_the_next_one() -> None:
    async def play(timers: LoopTimers) -> None:
        called = asyncio.Event()
        timers.at(now_ns(), lambda: timers.at(now_ns() + 100_000, called.set))
        await called.wait()

    on_a_loop(play)


def test_a_raising_callback_does_not_prevent_others() -> None:
    async def play(timers: LoopTimers) -> None:
        called, errors = asyncio.Event(), list[object]()
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: errors.append(context["exception"])
        )
        fault = RuntimeError("a fault")

        def raises() -> None:
            raise fault

        due = now_ns()
        timers.at(due, raises)
        timers.at(due + 1, called.set)
        await called.wait()
        assert errors == [fault]

    on_a_loop(play)


def test_close_calls_pending_callbacks_and_closes_the_file() -> None:
    called: list[int] = []
    files: list[set[str]] = []

    async def play() -> None:
        files.append(set(os.listdir("/proc/self/fd")))
        timers = LoopTimers(asyncio.get_running_loop())
        timers.at(now_ns() + FAR, lambda: called.append(1))
        timers.close()
        files.append(set(os.listdir("/proc/self/fd")))

    asyncio.run(play())
    assert called == [1]
    assert files[0] == files[1]


def test_wakeups_use_timers_only_on_their_attached_loop() -> None:
    wakeups, woken = Wakeups(), list[str]()
    assert not wakeups.at(0, lambda: woken.append("no loop"))

    async def turn() -> None:
        wakeups.attach(asyncio.get_running_loop())
        assert not await asyncio.to_thread(wakeups.at, 0, lambda: woken.append("elsewhere"))
        called = asyncio.Event()
        assert wakeups.at(now_ns(), called.set)
        await called.wait()
        assert wakeups.at(now_ns() + FAR, lambda: woken.append("left"))
        wakeups.detach()
        assert not wakeups.at(0, lambda: woken.append("gone"))

    asyncio.run(turn())
    assert woken == ["left"]


@pytest.mark.parametrize("lacks", ["the function", "files"])
def test_without_system_timers_the_caller_must_use_another_timer(
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
    wakeups = Wakeups()

    async def turn() -> None:
        wakeups.attach(asyncio.get_running_loop())
        assert not wakeups.at(0, lambda: None)
        assert not wakeups.at(0, lambda: None)
        wakeups.detach()

    asyncio.run(turn())
