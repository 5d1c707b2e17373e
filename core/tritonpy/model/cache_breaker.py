"""Whether a cache that failed is tried again: a decision without clock or thread."""

from __future__ import annotations

FAILURES = 3
PAUSE_NS = 1_000_000_000


class Breaker:
    """Closed while calls succeed. After three failures in a row it lets one call through per second, until one succeeds.

    Two threads that meet in here let one call more or less through, which does no harm.
    """

    def __init__(self) -> None:
        self._failures = 0
        self._next_ns = 0

    def lets_through(self, now_ns: int) -> bool:
        """Say whether a call may be made now."""
        if self._failures < FAILURES:
            return True
        if now_ns < self._next_ns:
            return False
        self._next_ns = now_ns + PAUSE_NS
        return True

    def failed(self, now_ns: int) -> None:
        """Take note of a call that raised, or of which nothing was heard in time."""
        self._failures += 1
        self._next_ns = now_ns + PAUSE_NS

    def succeeded(self) -> bool:
        """Take note of a call that came back; return whether it opened the way again."""
        was_broken, self._failures = self._failures >= FAILURES, 0
        return was_broken
