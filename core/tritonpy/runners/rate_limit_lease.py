"""Leases of instances at the rate limiter."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tritonpy.api.rate_limiter import RateLimiter


class RateLimitLease:
    """The lease of an instance whose thread can block.

    `on_wait` is called before the thread blocks: another instance may be able to execute meanwhile.
    """

    def __init__(self, limiter: RateLimiter, name: str, on_wait: Callable[[], None]) -> None:
        self._limiter = limiter
        self._name = name
        self._on_wait = on_wait
        self._granted = threading.Semaphore(0)
        self._cancelled = False

    def acquire(self) -> bool:
        """Block until the instance may execute; return False if the instance ends."""
        return self._wait(self._limiter.acquire)

    def renew(self) -> bool:
        """Release the lease and wait for the next one; return False if the instance ends."""
        return self._wait(self._limiter.reacquire)

    def release(self) -> None:
        """Release the lease."""
        self._limiter.release(self._name)

    def cancel(self) -> None:
        """Unblock the waiting thread from another thread, because the instance ends."""
        self._cancelled = True
        self._granted.release()

    def _wait(self, request_lease: Callable[[str, Callable[[], object]], bool]) -> bool:
        if not request_lease(self._name, self._granted.release):
            self._on_wait()
            self._granted.acquire()
        return not self._cancelled


class PooledRateLimitLease:
    """The lease of an instance whose thread must not block.

    `granted` is called when the limiter grants a lease later. `lock` is the model's. After
    `cancel`, leases are taken without a grant, because no work remains.
    """

    def __init__(
        self, limiter: RateLimiter, name: str, lock: threading.RLock, granted: Callable[[], None]
    ) -> None:
        self.held = False
        self._limiter = limiter
        self._name = name
        self._lock = lock
        self._granted = granted
        self._waiting = False
        self._early = False  # granted before the instance was recorded as waiting
        self._cancelled = False

    def acquire(self) -> bool:
        """Return whether the instance may execute now."""
        return self._take(self._limiter.acquire)

    def renew(self) -> bool:
        """Release the lease and return whether the instance may execute again now."""
        self.held = False
        return self._take(self._limiter.reacquire)

    def release(self) -> None:
        """Release the lease if it is held."""
        if self.held:
            self.held = False
            self._limiter.release(self._name)

    def cancel(self) -> bool:
        """Stop waiting, because the instance ends; return whether it waited and so has no owner."""
        with self._lock:
            self._cancelled = True
            waited, self._waiting = self._waiting, False
        return waited

    def _take(self, request_lease: Callable[[str, Callable[[], object]], bool]) -> bool:
        granted = request_lease(self._name, self._grant)
        with self._lock:
            self.held = granted or self._early or self._cancelled
            self._early = False
            self._waiting = not self.held
        return self.held

    def _grant(self) -> None:
        with self._lock:
            over, waited, self._waiting = self._cancelled, self._waiting, False
            self._early = not (waited or over)
            self.held = self.held or waited
        if waited:
            self._granted()
        elif over:
            self._limiter.release(self._name)
