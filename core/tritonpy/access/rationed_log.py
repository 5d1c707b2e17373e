"""Warnings of what callers do, of which no caller can make so many that they fill the log."""

from __future__ import annotations

import logging
from collections.abc import Callable

from tritonpy.clock import now_ns

_BURST = 10  # lines
_REFILL_NS = 1_000_000_000  # per line


class RationedLog:
    """At most ten lines at once and one a second are logged; the next one tells how many are missing. `clock` gives nanoseconds."""

    def __init__(self, log: logging.Logger, clock: Callable[[], int] = now_ns) -> None:
        self._log = log
        self._clock = clock
        self._tokens = float(_BURST)
        self._looked_ns = clock()
        self._unlogged = 0

    def warn(self, text: str) -> None:
        """Log `text`, or count it among what is left out."""
        now = self._clock()
        self._tokens = min(_BURST, self._tokens + (now - self._looked_ns) / _REFILL_NS)
        self._looked_ns = now
        if self._tokens < 1:
            self._unlogged += 1
            return
        self._tokens -= 1
        more = f" ({self._unlogged} such lines before it are left out)" if self._unlogged else ""
        self._unlogged = 0
        self._log.warning("%s%s", text, more)
