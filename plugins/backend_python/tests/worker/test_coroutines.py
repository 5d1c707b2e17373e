from __future__ import annotations

import asyncio
import gc
from threading import Event, current_thread

import pytest

from tritonpy_worker.coroutines import Coroutines


@pytest.fixture
def coroutines():
    made = Coroutines()
    yield made
    made.stop()


async def name() -> str:
    return current_thread().name


def test_all_coroutines_run_in_one_thread(coroutines: Coroutines) -> None:
    assert coroutines.run(name()) == coroutines.run(name()) != current_thread().name


def test_exceptions_of_a_coroutine_are_raised(coroutines: Coroutines) -> None:
    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        coroutines.run(fail())


def test_start_does_not_wait_for_the_coroutine(coroutines: Coroutines) -> None:
    done = Event()

    async def later() -> None:
        await asyncio.sleep(0)
        done.set()

    coroutines.start(later())
    assert done.wait(30)


def test_start_can_wait_for_the_first_await(coroutines: Coroutines) -> None:
    steps = []

    async def two_steps() -> None:
        steps.append("first")
        await asyncio.Event().wait()
        steps.append("second")

    coroutines.enable_flow_control()
    coroutines.await_begin()
    for count in range(1, 20):
        coroutines.start(two_steps())
        assert steps == ["first"] * count


def test_a_background_coroutine_that_waits_is_not_garbage_collected(coroutines: Coroutines) -> None:
    waiting, collected = Event(), Event()

    async def wait_for_nothing() -> None:
        try:
            waiting.set()
            await asyncio.Event().wait()
        except GeneratorExit:
            collected.set()
            raise

    coroutines.start(wait_for_nothing())
    assert waiting.wait(30)
    coroutines.run(name())  # it has reached its await
    gc.collect()
    assert not collected.is_set()


def test_running_coroutines_are_cancelled_at_the_end(coroutines: Coroutines) -> None:
    running, cancelled = Event(), Event()

    async def forever() -> None:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    coroutines.start(forever())
    assert running.wait(30)
    coroutines.stop()
    assert cancelled.wait(30)


def test_stop_without_a_loop_does_nothing() -> None:
    Coroutines().stop()
