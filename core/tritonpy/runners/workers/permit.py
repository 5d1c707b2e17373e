"""What an instance has to do with the rate limiter, where it has no thread that could wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from tritonpy.api.rate_limiter import RateLimiter


class Permit:
    """Everything but the limiter's own word runs on the loop's thread; `granted` is called there when a permission comes that was not there at once."""

    def __init__(
        self, limiter: RateLimiter, name: str, loop: asyncio.AbstractEventLoop, granted: Callable[[], None]
    ) -> None:
        self.held = False
        self.asked = False
        self._limiter = limiter
        self._name = name
        self._loop = loop
        self._granted = granted

    def take(self) -> bool:
        """Say whether the instance may execute now. While it waits for that it does not ask again."""
        if not (self.held or self.asked):
            self._note(self._limiter.acquire(self._name, self._tell))
        return self.held

    def again(self) -> None:
        """Give the permission back and ask for the next one: there is more to do."""
        self.held = False
        self._note(self._limiter.again(self._name, self._tell))

    def release(self) -> None:
        """Give the permission back, where there is one."""
        if self.held:
            self.held = False
            self._limiter.release(self._name)

    def _note(self, held: bool) -> None:
        self.held, self.asked = held, not held

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: whoever asked is no more
            self._loop.call_soon_threadsafe(self._take_grant)

    def _take_grant(self) -> None:
        self._note(True)
        self._granted()  # it gives it back where there is nothing to run, or nobody to run it
