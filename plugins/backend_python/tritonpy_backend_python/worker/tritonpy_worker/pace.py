"""Coroutines that answer streams go no faster than their clients: they are held where they wait anyway, for a loop must not stand still."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any

WhenReady = Callable[[Callable[[], None]], None]  # calls back once: when there is room, or nobody listens any more


class Pace:
    """The streams that one task has to wait for before its next step."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._full: dict[int, WhenReady] = {}

    def hold(self, request: int, when_ready: WhenReady) -> None:
        """Take note that the task sent an answer of a request whose stream has no room."""
        self._full[request] = when_ready

    def __bool__(self) -> bool:
        return bool(self._full)

    async def room(self) -> None:
        """Wait until all of them have room."""
        while self._full:
            _, when_ready = self._full.popitem()
            room = self.loop.create_future()
            when_ready(partial(self._wake, room))
            await room

    def _wake(self, room: asyncio.Future[None]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(_finish, room)


# Known to what a task calls and awaits; other tasks have their own.
_PACE: ContextVar[Pace | None] = ContextVar("tritonpy_pace", default=None)


def current_pace() -> Pace | None:
    """Return that of the task which runs in the calling thread, None outside of paced tasks."""
    pace = _PACE.get()
    return pace if pace is not None and asyncio._get_running_loop() is pace.loop else None


def paced_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    """Make a task of a coroutine that is held before a step while a stream it answered has no room (a task factory)."""
    return asyncio.Task(_held(coroutine), loop=loop, **options)


async def _held(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return await _Held(coroutine)


class _Held:
    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, Any]:
        pace = Pace(asyncio.get_running_loop())
        _PACE.set(pace)
        raised: BaseException | None = None
        while True:
            try:
                awaited = self._coroutine.send(None) if raised is None else self._coroutine.throw(raised)
            except StopIteration as end:
                return end.value
            raised = None
            try:
                yield awaited
                if pace:
                    yield from pace.room().__await__()
            except BaseException as error:  # cancellation too is for the coroutine
                raised = error


def _finish(room: asyncio.Future[None]) -> None:
    if not room.done():
        room.set_result(None)
