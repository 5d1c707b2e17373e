"""Cancellation of a model's load."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class LoadCancellation:
    """Cancels the load of a model: it was unloaded while loading, timed out, or the server stops.

    Any thread may cancel a load, once. A backend that waits while it loads passes a function that
    ends the wait:

        with model.cancellation.calling(process.kill):
            process.wait()

    A load that cannot be interrupted can ignore this class. Its result is discarded.
    """

    def __init__(self) -> None:
        self.reason = ""
        self._callbacks: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    @property
    def canceled(self) -> bool:
        """Whether the load is canceled."""
        return bool(self.reason)

    def cancel(self, reason: str) -> None:
        """Cancel the load and call the callbacks in this thread; `reason` is for the log."""
        with self._lock:
            if self.reason:
                return
            self.reason = reason
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback()

    @contextmanager
    def calling(self, callback: Callable[[], object]) -> Iterator[None]:
        """Call `callback` if the load is canceled during the block.

        If the load is canceled already, call it immediately. It must not block or raise.
        """
        with self._lock:
            canceled = bool(self.reason)
            self._callbacks.append(callback)
        try:
            if canceled:
                callback()
            yield
        finally:
            with self._lock:
                self._callbacks.remove(callback)
