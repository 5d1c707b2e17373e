"""The event loop of a model's coroutines, in its own thread, started by the first coroutine."""

from __future__ import annotations

import asyncio
from threading import Lock, Thread
from typing import Any

from .task_flow_control import flow_controlled_task


class Coroutines:
    """Runs the coroutines of other threads on an event loop in its own thread."""

    def __init__(self) -> None:
        self._starting = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._flow_controlled = False
        self._awaits_begin = False
        # An event loop only has weak references to its tasks: without these, a waiting task could
        # be garbage-collected.
        self._background: set[Any] = set()

    def enable_flow_control(self) -> None:
        """Let coroutines wait for the flow control of their streams.

        Call this before the first coroutine.
        """
        self._flow_controlled = True

    def await_begin(self) -> None:
        """Let `start` wait for the first `await`, so that execution limits cover blocked loops."""
        self._awaits_begin = True

    def run(self, coroutine: Any) -> Any:
        """Run a coroutine and return its result. Raises its exceptions."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._running()).result()

    def start(self, coroutine: Any) -> None:
        """Start a coroutine in the background. After `await_begin`, wait for its first `await`."""
        running = asyncio.run_coroutine_threadsafe(coroutine, self._running())
        self._background.add(running)
        running.add_done_callback(self._background.discard)
        if self._awaits_begin:
            self.run(_nothing())  # the loop runs this after the coroutine's first step

    def stop(self) -> None:
        """Stop the loop and cancel its tasks."""
        with self._starting:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                if self._flow_controlled:
                    self._loop.set_task_factory(flow_controlled_task)
                Thread(
                    target=_serve, args=(self._loop,), name="tritonpy-coroutines", daemon=True
                ).start()
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
