"""Back-pressure: how many responses a producer may send before the client reads some."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class FlowControl:
    """Counts the responses of one request that were sent to its stream and are not consumed.

    The window is exhausted at `max_responses` responses or `max_bytes` bytes, whichever comes
    first. A response larger than the whole window may still be sent while credit is left. Nothing
    is refused; the producer waits. Any thread may call any method. Methods never block, and call no
    callback under a lock.
    """

    __slots__ = (
        "_abandoned",
        "_bytes",
        "_lock",
        "_max_bytes",
        "_max_responses",
        "_sizes",
        "_waiting",
    )

    def __init__(self, max_responses: int, max_bytes: int) -> None:
        self._max_responses = max_responses
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self._waiting: list[Callable[[], None]] = []
        self._abandoned = False

    @property
    def responses(self) -> int:
        """Number of responses in the stream."""
        return len(self._sizes)

    @property
    def nbytes(self) -> int:
        """Bytes in the stream."""
        return self._bytes

    @property
    def ready(self) -> bool:
        """Whether the producer may send another response; always true for an abandoned stream."""
        return (
            len(self._sizes) < self._max_responses and self._bytes < self._max_bytes
        ) or self._abandoned

    @property
    def blocks_producer(self) -> bool:
        """Whether a producer must wait for credit or, once it waits, for half the window."""
        return bool(self._waiting) or not self.ready

    def put(self, nbytes: int) -> None:
        """Count a response of `nbytes` bytes that enters the stream."""
        with self._lock:
            self._sizes.append(nbytes)
            self._bytes += nbytes

    def take(self) -> None:
        """Remove the oldest response. Raises IndexError if there is none."""
        with self._lock:
            self._bytes -= self._sizes.popleft()
            callbacks = self._take_waiting() if self._waiting and self._half_empty() else ()
        for callback in callbacks:
            callback()

    def when_ready(self, callback: Callable[[], None]) -> None:
        """Call `callback` once: now if credit is left, else when half the window is free.

        `release` and `abandon` call it, too. Waiting for half the window avoids a wake-up per
        response if the producer is faster than its consumer.
        """
        with self._lock:
            if not self.ready:
                self._waiting.append(callback)
                return
        callback()

    def release(self) -> None:
        """Call the waiting callbacks without credit, because the request was cancelled."""
        with self._lock:
            callbacks = self._take_waiting()
        for callback in callbacks:
            callback()

    def abandon(self) -> None:
        """Let producers continue without limit, since nothing consumes responses any more."""
        self._abandoned = True
        self.release()

    def _half_empty(self) -> bool:
        return 2 * len(self._sizes) <= self._max_responses and 2 * self._bytes <= self._max_bytes

    def _take_waiting(self) -> list[Callable[[], None]]:
        waiting, self._waiting = self._waiting, []
        return waiting
