"""The clock of the server: monotonic nanoseconds, as in Triton's time stamps."""

from __future__ import annotations

import time

now_ns = time.monotonic_ns


def epoch_ms() -> int:
    """Return the wall clock in milliseconds since 1970, for output to users."""
    return time.time_ns() // 1_000_000
