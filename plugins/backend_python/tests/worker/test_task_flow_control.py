from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tritonpy_worker.task_flow_control import current_flow_control, flow_controlled_task


class Full:
    """A stream without capacity until it is released."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[[], None]] = []

    def when_ready(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    def has_room(self) -> None:
        for callback in self.callbacks:
            callback()

    def answer(self) -> None:
        flow_control = current_flow_control()
        assert flow_control is not None
        flow_control.hold(1, self.when_ready)


def run(scenario: Callable[[], Any]) -> Any:
    async def paced() -> Any:
        asyncio.get_running_loop().set_task_factory(flow_controlled_task)
        return await asyncio.get_running_loop().create_task(scenario())

    return asyncio.run(asyncio.wait_for(paced(), 10))


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_a_task_waits_at_its_next_step_for_capacity() -> None:
    steps: list[str] = []

    async def answering(stream: Full) -> str:
        stream.answer()
        steps.append("answered")
        await asyncio.sleep(0)
        steps.append("went on")
        return "result"

    async def scenario() -> None:
        stream = Full()
        task = asyncio.create_task(answering(stream))
        await turns()
        assert (steps, len(stream.callbacks)) == (["answered"], 1)
        await asyncio.to_thread(stream.has_room)
        assert await task == "result"

    run(scenario)
    assert steps == ["answered", "went on"]


def test_other_tasks_and_tasks_without_await_continue() -> None:
    async def answering(stream: Full) -> None:
        stream.answer()
        stream.answer()

    async def scenario() -> None:
        held = asyncio.create_task(answering(Full()))
        await turns()
        assert held.done()

    run(scenario)


def test_a_stream_with_capacity_does_not_block() -> None:
    async def scenario() -> None:
        flow_control = current_flow_control()
        assert flow_control is not None
        flow_control.hold(1, lambda callback: callback())
        flow_control.hold(2, lambda callback: callback())
        await asyncio.sleep(0)
        assert not flow_control

    run(scenario)


def test_a_waiting_task_can_be_cancelled() -> None:
    seen: list[str] = []

    async def answering(stream: Full) -> None:
        stream.answer()
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def scenario() -> None:
        stream = Full()
        task = asyncio.create_task(answering(stream))
        await turns()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        stream.has_room()

    run(scenario)
    assert seen == ["cancelled"]


def test_exceptions_in_a_coroutine_are_unchanged() -> None:
    async def failing() -> None:
        await asyncio.sleep(0)
        raise ValueError("mine")

    async def scenario() -> str:
        with pytest.raises(ValueError, match="mine"):
            await asyncio.create_task(failing())
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 0.001)
        return "went on"

    assert run(scenario) == "went on"


def test_flow_control_is_per_task() -> None:
    found: list[Any] = []

    async def look() -> None:
        found.append(current_flow_control())

    async def scenario() -> None:
        found.append(current_flow_control())
        await asyncio.create_task(look())
        await look()
        context = contextvars.copy_context()
        thread = threading.Thread(
            target=context.run, args=(lambda: found.append(current_flow_control()),)
        )
        thread.start()
        thread.join()

    run(scenario)
    own, other, awaited, thread = found
    assert own is awaited
    assert other is not own
    assert thread is None
    assert current_flow_control() is None


def test_a_wake_up_after_the_end_of_the_loop_is_ignored() -> None:
    stream = Full()

    async def answering() -> None:
        stream.answer()
        await asyncio.sleep(0)

    async def scenario() -> None:
        task = asyncio.create_task(answering())
        await turns()
        task.cancel()

    run(scenario)
    stream.has_room()
