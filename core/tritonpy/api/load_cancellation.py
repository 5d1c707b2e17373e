"""How a backend learns that the load of its model is canceled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class LoadCancellation:
    """Canceled once, from any thread: the model was unloaded while it was loading, its load timed out, or the server stops.

    A backend that waits for something while it loads passes what ends that wait:

        with model.cancellation.calling(process.kill):
            process.wait()

    A load that cannot be interrupted needs nothing of this: its result is dropped when it returns.
    """

    def __init__(self) -> None:
        self.reason = ""
        self._callbacks: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    @property
    def canceled(self) -> bool:
        """Whether the result of the load is no longer wanted."""
        return bool(self.reason)

    def cancel(self, reason: str) -> None:
        """Cancel the load; `reason` is for the log. Calls the callbacks in this thread."""
        with self._lock:
            if self.reason:
                return
            self.reason = reason
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback()

    @contextmanager
    def calling(self, callback: Callable[[], object]) -> Iterator[None]:
        """Call `callback` when the load is canceled during the block, at once if it already is. It must not block or raise."""
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
