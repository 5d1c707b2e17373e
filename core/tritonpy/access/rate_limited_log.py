"""Rate-limited warnings: clients that cause them cannot flood the log."""

from __future__ import annotations

import logging
from collections.abc import Callable

from tritonpy.clock import now_ns

_BURST = 10  # lines
_REFILL_NS = 1_000_000_000  # per line


class RateLimitedLog:
    """A log of up to ten lines at once and one more per second. `clock` returns nanoseconds.

    A line after suppressed ones includes their number.
    """

    def __init__(self, log: logging.Logger, clock: Callable[[], int] = now_ns) -> None:
        self._log = log
        self._clock = clock
        self._tokens = float(_BURST)
        self._updated_ns = clock()
        self._suppressed = 0

    def warn(self, text: str) -> None:
        """Log `text`, or count it as suppressed."""
        now = self._clock()
        self._tokens = min(_BURST, self._tokens + (now - self._updated_ns) / _REFILL_NS)
        self._updated_ns = now
        if self._tokens < 1:
            self._suppressed += 1
            return
        self._tokens -= 1
        more = f" ({self._suppressed} similar lines suppressed)" if self._suppressed else ""
        self._suppressed = 0
        self._log.warning("%s%s", text, more)
