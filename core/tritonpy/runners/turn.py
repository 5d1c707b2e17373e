"""An instance's turns at the rate limiter, where the instance has a thread that can wait for them."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tritonpy.api.rate_limiter import RateLimiter


class Turn:
    """`waits` is called before the thread waits: somebody else may be free to do what it cannot do yet."""

    def __init__(self, limiter: RateLimiter, name: str, waits: Callable[[], None]) -> None:
        self._limiter = limiter
        self._name = name
        self._waits = waits
        self._granted = threading.Semaphore(0)
        self._over = False

    def begin(self) -> bool:
        """Wait until the instance may execute; False when it shall not any more."""
        return self._wait(self._limiter.acquire)

    def again(self) -> bool:
        """Let go and wait for the next turn."""
        return self._wait(self._limiter.again)

    def end(self) -> None:
        """Let go."""
        self._limiter.release(self._name)

    def give_up(self) -> None:
        """Send the thread on its way if it waits; called by another one, when the instance ends."""
        self._over = True
        self._granted.release()

    def _wait(self, ask: Callable[[str, Callable[[], object]], bool]) -> bool:
        if not ask(self._name, self._granted.release):
            self._waits()
            self._granted.acquire()
        return not self._over
