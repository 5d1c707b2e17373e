"""An instance's turns at the rate limiter."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tritonpy.api.rate_limiter import RateLimiter


class Turn:
    """For an instance with a thread that can wait for them.

    `waits` is called before the thread waits: somebody else may be free to do what it cannot do yet.
    """

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


class PooledTurn:
    """For an instance whose thread does not wait for them: `granted` is called when the limiter lets it execute later.

    `lock` is the model's. A turn that is taken after `give_up` is one without a grant: there is nothing to execute then.
    """

    def __init__(self, limiter: RateLimiter, name: str, lock: threading.RLock, granted: Callable[[], None]) -> None:
        self.held = False
        self._limiter = limiter
        self._name = name
        self._lock = lock
        self._granted = granted
        self._waiting = False
        self._early = False  # the grant came before it was known that the instance waits
        self._over = False

    def take(self) -> bool:
        """Return whether the instance may execute now."""
        return self._take(self._limiter.acquire)

    def again(self) -> bool:
        """Let go and say whether the instance may execute again now."""
        self.held = False
        return self._take(self._limiter.again)

    def release(self) -> None:
        """Let go, where there is a turn."""
        if self.held:
            self.held = False
            self._limiter.release(self._name)

    def give_up(self) -> bool:
        """Wait no more, because the instance ends; return whether it waited, without an owner."""
        with self._lock:
            self._over = True
            waited, self._waiting = self._waiting, False
        return waited

    def _take(self, ask: Callable[[str, Callable[[], object]], bool]) -> bool:
        granted = ask(self._name, self._tell)
        with self._lock:
            self.held = granted or self._early or self._over
            self._early = False
            self._waiting = not self.held
        return self.held

    def _tell(self) -> None:
        with self._lock:
            over, waited, self._waiting = self._over, self._waiting, False
            self._early = not (waited or over)
            self.held = self.held or waited
        if waited:
            self._granted()
        elif over:
            self._limiter.release(self._name)
