"""Waits for a condition that another thread makes true."""

from __future__ import annotations

import time
from collections.abc import Callable

from tritonpy_testing.recording_sink import WAIT_S


def wait_until(condition: Callable[[], object]) -> None:
    """Return as soon as `condition()` is true. Raises AssertionError after a long time."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "the condition was never true"
        time.sleep(0.005)
