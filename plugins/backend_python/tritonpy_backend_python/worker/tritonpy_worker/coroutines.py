"""The event loop of a model that has coroutines: one, in a thread of its own, from the first coroutine on."""

from __future__ import annotations

import asyncio
from threading import Lock, Thread
from typing import Any

from .pace import paced_task


class Coroutines:
    """Runs coroutines for threads that are not the loop's."""

    def __init__(self) -> None:
        self._starting = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._paced = False
        self._awaits_begin = False
        # An event loop refers weakly to its tasks: without these, one that waits could be garbage-collected.
        self._background: set[Any] = set()

    def pace(self) -> None:
        """Hold coroutines whose streams have no room; to be said before the first of them."""
        self._paced = True

    def await_begin(self) -> None:
        """Have `start` wait: who asks for a limit of time is to learn of a loop that stands still."""
        self._awaits_begin = True

    def run(self, coroutine: Any) -> Any:
        """Wait for the result. Raises what the coroutine raises."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._running()).result()

    def start(self, coroutine: Any) -> None:
        """Let it run in the background; where that is wanted, wait until it has come to its first `await`."""
        running = asyncio.run_coroutine_threadsafe(coroutine, self._running())
        self._background.add(running)
        running.add_done_callback(self._background.discard)
        if self._awaits_begin:
            self.run(_nothing())  # the loop takes it up after that one

    def stop(self) -> None:
        """End the loop; what still runs on it is cancelled."""
        with self._starting:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                if self._paced:
                    self._loop.set_task_factory(paced_task)
                Thread(target=_serve, args=(self._loop,), name="tritonpy-coroutines", daemon=True).start()
            return self._loop


async def _nothing() -> None:
    pass


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
