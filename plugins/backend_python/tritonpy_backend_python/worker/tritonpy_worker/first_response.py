"""The moment at which an awaited call is answered for the first time."""

from __future__ import annotations

from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from contextlib import suppress


class FirstResponse:
    """A future of the event loop `loop` that any thread may complete; `given_up()` is called where its coroutine is cancelled before."""

    def __init__(self, loop: AbstractEventLoop, given_up: Callable[[], None]) -> None:
        self._loop = loop
        self._given_up = given_up
        self._arrived = False
        self.future: Future[None] = loop.create_future()
        self.future.add_done_callback(self._done)

    def arrive(self) -> None:
        """Complete the future; later ones change nothing."""
        if not self._arrived:
            self._arrived = True
            with suppress(RuntimeError):  # the loop was closed this moment
                self._loop.call_soon_threadsafe(self._complete)

    def _complete(self) -> None:
        if not self.future.done():
            self.future.set_result(None)

    def _done(self, future: Future[None]) -> None:
        given_up = self._given_up
        del self._given_up  # it leads back to whoever holds this: a circle would outlive them
        if future.cancelled():
            given_up()
