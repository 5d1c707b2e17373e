from __future__ import annotations

import logging

from tritonpy.access.rate_limited_log import RateLimitedLog

SECOND = 1_000_000_000


def test_lines_are_limited_and_suppressed_lines_are_counted(caplog):
    now = 0
    limited = RateLimitedLog(logging.getLogger("tritonpy.access"), lambda: now)
    for number in range(1000):
        limited.warn(f"line {number}")
    assert caplog.messages == [f"line {number}" for number in range(10)]
    now += SECOND
    limited.warn("one")
    limited.warn("other")
    assert caplog.messages[10:] == ["one (990 similar lines suppressed)"]


def test_a_pause_allows_at_most_ten_lines(caplog):
    now = 0
    limited = RateLimitedLog(logging.getLogger("tritonpy.access"), lambda: now)
    now += 1000 * SECOND
    for _ in range(100):
        limited.warn("line")
    assert len(caplog.messages) == 10
