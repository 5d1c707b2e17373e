"""A circuit breaker for calls to a response cache. Uses no clock and no thread."""

from __future__ import annotations

FAILURES = 3
PAUSE_NS = 1_000_000_000


class CircuitBreaker:
    """Opens after three consecutive failures, then allows one call per second until one succeeds.

    Not synchronized: a race may allow one call more or less, which is harmless.
    """

    def __init__(self) -> None:
        self._failures = 0
        self._next_ns = 0

    def allows_call(self, now_ns: int) -> bool:
        """Return whether a call may be made now."""
        if self._failures < FAILURES:
            return True
        if now_ns < self._next_ns:
            return False
        self._next_ns = now_ns + PAUSE_NS
        return True

    def record_failure(self, now_ns: int) -> None:
        """Record a call that raised or missed its deadline."""
        self._failures += 1
        self._next_ns = now_ns + PAUSE_NS

    def record_success(self) -> bool:
        """Record a successful call; return whether it closed the breaker again."""
        was_broken, self._failures = self._failures >= FAILURES, 0
        return was_broken
