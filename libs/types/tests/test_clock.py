from __future__ import annotations

import time

from tritonpy_types.clock import epoch_ms, now_ns


def test_the_clock_is_monotonic() -> None:
    times = [now_ns() for _ in range(1000)]
    assert times == sorted(times)


def test_epoch_ms_is_milliseconds_since_1970() -> None:
    assert abs(epoch_ms() / 1000 - time.time()) < 60
