from __future__ import annotations

import asyncio
import time

import pytest

from tritonpy_load_generator.loops.precise_timer import PreciseTimer


@pytest.fixture(params=["timerfd", "loop"])
def timed(request):
    """Run with a timer of each kind; systems other than Linux have the second."""

    def run(coroutine):
        async def main():
            timer = PreciseTimer(asyncio.get_running_loop())
            if request.param == "loop":
                timer.close()
            try:
                await coroutine(timer)
            finally:
                timer.close()

        asyncio.run(main())

    return run


def test_the_timer_does_not_fire_early(timed):
    async def main(timer):
        due = time.monotonic_ns() + 3_000_000
        called = asyncio.Event()
        timer.at(due, called.set)
        await called.wait()
        assert time.monotonic_ns() >= due - 1_000_000  # the loop's own timer counts in milliseconds

    timed(main)


def test_a_past_deadline_fires_soon_and_replaces_the_earlier_one(timed):
    async def main(timer):
        seen, called = [], asyncio.Event()
        timer.at(time.monotonic_ns() + 20_000_000, lambda: seen.append("early"))
        timer.at(0, lambda: (seen.append("late"), called.set()))
        await called.wait()
        second = asyncio.Event()
        timer.at(time.monotonic_ns() + 40_000_000, second.set)
        await second.wait()
        assert seen == ["late"]

    timed(main)


def test_after_closing_nothing_is_called(timed):
    async def main(timer):
        seen = []
        timer.at(time.monotonic_ns() + 1_000_000, lambda: seen.append(1))
        timer.close()
        await asyncio.sleep(0.005)
        assert seen == []

    timed(main)
