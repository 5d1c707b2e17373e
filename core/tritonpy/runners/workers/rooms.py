"""When the worker of a decoupled model may go on answering."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import msgspec

from tritonpy.runners.workers.executions import Executions
from tritonpy.types import InferRequest


class RoomSaid(msgspec.Struct):
    """The number of a request with many answers."""

    request: int


class Rooms:
    """Answers the question "room": at once, or when the consumer of the stream has room again. Everything here runs on the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, executions: Executions) -> None:
        self._loop = loop
        self._executions = executions
        self._waiting: set[asyncio.Future[None]] = set()
        self._released = False

    def wait(self, said: RoomSaid) -> asyncio.Future[None] | None:
        """Return what is done when there is room, nobody listens any more or the request is cancelled; None: now."""
        request = self._executions.open.get(said.request)
        if request is None or self._released or request.cancelled or request.sink.ready(request):
            return None
        return self._wait(request)

    def release(self) -> None:
        """Say yes to everybody, from now on too."""
        self._released = True
        for room in list(self._waiting):
            _finish(room)

    def _wait(self, request: InferRequest) -> asyncio.Future[None]:
        room: asyncio.Future[None] = self._loop.create_future()
        self._waiting.add(room)
        room.add_done_callback(self._waiting.discard)
        request.sink.when_ready(request, lambda: self._finish_soon(room))
        if request.cancelled:  # meanwhile, perhaps before the sink knew of anybody to call
            _finish(room)
        return room

    def _finish_soon(self, room: asyncio.Future[None]) -> None:
        with suppress(RuntimeError):  # the loop is closed, and the worker with it
            self._loop.call_soon_threadsafe(_finish, room)


def _finish(room: asyncio.Future[None]) -> None:
    if not room.done():
        room.set_result(None)
