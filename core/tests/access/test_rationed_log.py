from __future__ import annotations

import logging

from tritonpy.access.rationed_log import RationedLog

SECOND = 1_000_000_000


def test_nobody_can_fill_the_log_and_what_is_missing_is_told(caplog):
    now = 0
    rationed = RationedLog(logging.getLogger("tritonpy.access"), lambda: now)
    for number in range(1000):
        rationed.warn(f"line {number}")
    assert caplog.messages == [f"line {number}" for number in range(10)]
    now += SECOND
    rationed.warn("one")
    rationed.warn("other")
    assert caplog.messages[10:] == ["one (990 such lines before it are left out)"]


def test_a_pause_saves_no_more_than_ten_lines_up(caplog):
    now = 0
    rationed = RationedLog(logging.getLogger("tritonpy.access"), lambda: now)
    now += 1000 * SECOND
    for _ in range(100):
        rationed.warn("line")
    assert len(caplog.messages) == 10
