"""The receiving end of a request, as ASGI wants it and pyvoy does not have it: behind the body it waits for the client to leave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import isinf
from typing import Any

from tritonpy_frontend_envoy.embedded.loops import NextFuture
from tritonpy_frontend_envoy.embedded.patrol import Patrol

TOO_SLOW = "The request took too long to arrive"
# Bytes of a body that are worth waiting for: each time that we ask costs three changes of threads, and clients send 16 KiB at a time.
MUCH = 256 * 1024
PAUSE_S = 0.001  # in which the fastest of clients sends a MiB, which is what Envoy takes unasked
_GONE = {"type": "http.disconnect"}


def shown_client(client: tuple[str, int] | None) -> str:
    """Return how the log names a client."""
    return f"{client[0]}:{client[1]}" if client else "a Unix socket"


class Surroundings:
    """What the requests of a process have in common; `stall_s` is how long a body may stand still, infinity for ever."""

    def __init__(self, patrol: Patrol, next_future: NextFuture, stall_s: float) -> None:
        self.patrol = patrol
        self.next_future = next_future
        self.stall_s = stall_s

    def ask_for(self, missing: int, ask: Callable[[], None]) -> None:
        """Call `ask`, for the next part of a body that still lacks so many bytes; of a large one when more of it has come."""
        if missing < MUCH:
            ask()
        else:
            asyncio.get_running_loop().call_later(PAUSE_S, ask)


class Reception:
    """`receive` of one request. A body that stands still for too long is a client that left; `stalled` is set then."""

    def __init__(self, receive: Any, surroundings: Surroundings) -> None:
        self.stalled = False
        self._receive = receive
        self._around = surroundings
        self._complete = False
        self._leaving: asyncio.Future[Any] | None = None

    async def __call__(self) -> Any:
        """Return the next message."""
        if self._complete:
            return await self._leave()
        try:
            async with asyncio.timeout(None if isinf(self._around.stall_s) else self._around.stall_s):
                message = await asyncio.shield(self._receive())  # pyvoy sets the result, wanted or not
        except TimeoutError:
            self.stalled = True
            message = _GONE
        self._complete = not message.get("more_body", False)
        return message

    async def _leave(self) -> Any:
        if self._leaving is None:
            self._leaving = asyncio.get_running_loop().create_future()
        self._around.patrol.watch(self)
        try:
            return await asyncio.shield(self._leaving)
        finally:
            self._around.patrol.forget(self)

    def look(self) -> None:
        """Ask whether the client is still there; the answer goes to `set_result`."""
        self._around.next_future.receive(self._receive, self)

    def set_result(self, message: Any) -> None:
        """Take pyvoy's answer: the end of the body once more, or that the client has left."""
        if message["type"] == "http.disconnect" and self._leaving is not None and not self._leaving.done():
            self._leaving.set_result(message)

    def cancelled(self) -> bool:
        """Say that the answer is wanted."""
        return False
