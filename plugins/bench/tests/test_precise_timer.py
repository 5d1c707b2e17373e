from __future__ import annotations

import asyncio
import time

import pytest

from tritonpy_bench.load.precise_timer import PreciseTimer


@pytest.fixture(params=["timerfd", "loop"])
def timed(request):
    """Run with a timer of each kind; the second is what other systems than Linux have."""

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


def test_it_calls_back_not_before_its_time(timed):
    async def main(timer):
        due = time.monotonic_ns() + 3_000_000
        called = asyncio.Event()
        timer.at(due, called.set)
        await called.wait()
        assert time.monotonic_ns() >= due - 1_000_000  # the loop's own timer counts in milliseconds

    timed(main)


def test_what_is_past_is_called_soon_and_only_the_last_time_counts(timed):
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
