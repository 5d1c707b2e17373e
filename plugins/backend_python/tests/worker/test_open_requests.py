from __future__ import annotations

import numpy as np

from tritonpy.ipc import Frame, Kind
from tritonpy_worker.ipc.windows import Windows
from tritonpy_worker.open_requests import OpenRequests


def cancellation(*numbers: int) -> Frame:
    return Frame(Kind.CANCEL, numbers, b"", np.empty(0, np.uint8), ())


def test_nothing_is_known_at_first_and_at_the_end() -> None:
    facts = OpenRequests(Windows(None, None))
    assert not facts
    facts.cancel(cancellation(1))
    facts.leave(2)
    facts.begin(3)
    facts.trace(4, "{}")
    assert facts
    assert (facts.is_cancelled(1), facts.has_begun(3), facts.trace_of(4)) == (True, True, "{}")
    facts.end([1, 2, 3, 4, 5])
    assert not facts
    assert (facts.is_cancelled(1), facts.has_begun(3), facts.trace_of(4)) == (False, False, None)


def test_a_cancellation_that_came_too_late_is_forgotten() -> None:
    facts = OpenRequests(Windows(None, None))
    facts.cancel(cancellation(1))
    facts.tidy([])
    assert not facts.is_cancelled(1)


def test_a_cancellation_waits_for_what_is_left_open() -> None:
    facts = OpenRequests(Windows(None, None))
    facts.leave(1)
    facts.cancel(cancellation(1, 2))
    facts.tidy([])
    assert (facts.is_cancelled(1), facts.is_cancelled(2)) == (True, False)


def test_a_cancellation_waits_for_what_has_not_begun() -> None:
    facts = OpenRequests(Windows(None, None))
    facts.cancel(cancellation(1))
    facts.tidy(["an execution"])
    assert facts.is_cancelled(1)
