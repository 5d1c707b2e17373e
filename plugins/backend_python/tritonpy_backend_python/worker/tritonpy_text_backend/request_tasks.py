"""One task for each request, which ends when the client cancels the request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

_CHECK_S = 0.02  # interval of the checks for cancelled requests


class RequestTasks:
    """Runs `answer(request, sender)` for each request on the running event loop.

    The task of a cancelled request gets CancelledError. It has to send the final response itself.
    """

    def __init__(self, answer: Callable[[Any, Any], Coroutine[Any, Any, None]]) -> None:
        self._answer = answer
        # Tasks and their response senders; None for a cancelled task.
        self._running: dict[asyncio.Task[None], Any] = {}
        self._watcher: asyncio.Task[None] | None = None

    async def run(self, requests: Sequence[Any]) -> None:
        """Answer requests; return when all of them have their final response."""
        loop = asyncio.get_running_loop()
        if self._watcher is None:
            self._watcher = loop.create_task(self._cancel_abandoned())
        tasks = []
        for request in requests:
            sender = request.get_response_sender()
            task = loop.create_task(self._answer(request, sender))
            self._running[task] = sender
            task.add_done_callback(self._running.pop)
            tasks.append(task)
        await asyncio.wait(tasks)

    async def _cancel_abandoned(self) -> None:
        """Cancel the tasks of cancelled requests."""
        while True:
            await asyncio.sleep(_CHECK_S)
            for task, sender in list(self._running.items()):
                if sender is not None and sender.is_cancelled():
                    self._running[task] = None  # cancel it once
                    task.cancel()
