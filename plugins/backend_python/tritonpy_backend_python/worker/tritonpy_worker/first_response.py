"""The arrival of an awaited call's first response."""

from __future__ import annotations

from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from contextlib import suppress


class FirstResponse:
    """A future of `loop` that any thread may complete.

    If the coroutine that awaits it is cancelled first, `on_cancel()` is called.
    """

    def __init__(self, loop: AbstractEventLoop, on_cancel: Callable[[], None]) -> None:
        self._loop = loop
        self._on_cancel = on_cancel
        self._arrived = False
        self.future: Future[None] = loop.create_future()
        self.future.add_done_callback(self._done)

    def set_arrived(self) -> None:
        """Complete the future. Further calls do nothing."""
        if not self._arrived:
            self._arrived = True
            with suppress(RuntimeError):  # the loop has just been closed
                self._loop.call_soon_threadsafe(self._complete)

    def _complete(self) -> None:
        if not self.future.done():
            self.future.set_result(None)

    def _done(self, future: Future[None]) -> None:
        on_cancel = self._on_cancel
        del self._on_cancel  # breaks a reference cycle with this object's owner
        if future.cancelled():
            on_cancel()
