"""The one clock of the server: monotonic nanoseconds, as Triton's time stamps are."""

from __future__ import annotations

import time

now_ns = time.monotonic_ns


def epoch_ms() -> int:
    """Return the wall clock in milliseconds since 1970, for what people read."""
    return time.time_ns() // 1_000_000
