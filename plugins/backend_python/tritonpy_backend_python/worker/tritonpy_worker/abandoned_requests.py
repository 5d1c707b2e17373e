"""Requests whose senders were deleted without a final response."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock, Thread

from .ipc.waiter import Waiter


class AbandonedRequests:
    """Calls `close(request)` for each added request, in its own thread.

    Destructors add the requests, because they must not take locks or send responses.
    """

    def __init__(self, close: Callable[[int], None]) -> None:
        self._close = close
        self._requests: deque[int] = deque()
        self._waiter = Waiter()
        self._starting = Lock()
        self._started = False

    def watch(self) -> None:
        """Start the thread if necessary. Call this before a request can be abandoned."""
        with self._starting:
            if not self._started:
                self._started = True
                Thread(target=self._run, name="tritonpy-abandoned", daemon=True).start()

    def add(self, request: int) -> None:
        """Add a request. Safe in a destructor."""
        self._requests.append(request)
        self._waiter.wake()

    def _run(self) -> None:
        while True:
            self._waiter.sleep()
            while self._requests:
                self._close(self._requests.popleft())
