"""Leases at the rate limiter for instances without a thread that could wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from tritonpy.scheduling import RateLimiter


class WorkerRateLimitLease:
    """A lease whose methods run on the event loop's thread.

    `granted` is called there when a lease is granted later.
    """

    def __init__(
        self,
        limiter: RateLimiter,
        name: str,
        loop: asyncio.AbstractEventLoop,
        granted: Callable[[], None],
    ) -> None:
        self.held = False
        self.requested = False
        self._limiter = limiter
        self._name = name
        self._loop = loop
        self._granted = granted

    def acquire(self) -> bool:
        """Return whether the instance may execute now; request a lease unless one is pending."""
        if not (self.held or self.requested):
            self._note(self._limiter.acquire(self._name, self._grant))
        return self.held

    def renew(self) -> None:
        """Release the lease and request the next one, because there is more work."""
        self.held = False
        self._note(self._limiter.reacquire(self._name, self._grant))

    def release(self) -> None:
        """Release the lease if it is held."""
        if self.held:
            self.held = False
            self._limiter.release(self._name)

    def _note(self, held: bool) -> None:
        self.held, self.requested = held, not held

    def _grant(self) -> None:
        with suppress(RuntimeError):  # the loop is closed, and the instance is gone
            self._loop.call_soon_threadsafe(self._take_grant)

    def _take_grant(self) -> None:
        self._note(True)
        self._granted()  # releases the lease if there is nothing to execute
