"""Flow control of coroutines that send streams: they wait without blocking the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any

# Calls the callback once, when there is capacity or the request is cancelled.
WhenReady = Callable[[Callable[[], None]], None]


class TaskFlowControl:
    """The streams that a task must wait for before its next step."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._full: dict[int, WhenReady] = {}

    def hold(self, request: int, when_ready: WhenReady) -> None:
        """Record that the task sent a response of a request whose stream is full."""
        self._full[request] = when_ready

    def __bool__(self) -> bool:
        return bool(self._full)

    async def wait_for_capacity(self) -> None:
        """Wait until all recorded streams have capacity."""
        while self._full:
            _, when_ready = self._full.popitem()
            capacity = self.loop.create_future()
            when_ready(partial(self._wake, capacity))
            await capacity

    def _wake(self, capacity: asyncio.Future[None]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(_finish, capacity)


# Visible to everything that a task calls and awaits. Other tasks have their own.
_CURRENT: ContextVar[TaskFlowControl | None] = ContextVar("tritonpy_flow_control", default=None)


def current_flow_control() -> TaskFlowControl | None:
    """Return the flow control of the calling thread's task, or None outside of such tasks."""
    flow_control = _CURRENT.get()
    return (
        flow_control
        if flow_control is not None and asyncio._get_running_loop() is flow_control.loop
        else None
    )


def flow_controlled_task(
    loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any
) -> asyncio.Task[Any]:
    """Create a task whose next step waits while a stream of the task is full; a task factory."""
    return asyncio.Task(_run_flow_controlled(coroutine), loop=loop, **options)


async def _run_flow_controlled(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return await _FlowControlledTask(coroutine)


class _FlowControlledTask:
    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, Any]:
        flow_control = TaskFlowControl(asyncio.get_running_loop())
        _CURRENT.set(flow_control)
        raised: BaseException | None = None
        while True:
            try:
                awaited = (
                    self._coroutine.send(None) if raised is None else self._coroutine.throw(raised)
                )
            except StopIteration as end:
                return end.value
            raised = None
            try:
                yield awaited
                if flow_control:
                    yield from flow_control.wait_for_capacity().__await__()
            except BaseException as error:  # cancellation also goes to the coroutine
                raised = error


def _finish(capacity: asyncio.Future[None]) -> None:
    if not capacity.done():
        capacity.set_result(None)
