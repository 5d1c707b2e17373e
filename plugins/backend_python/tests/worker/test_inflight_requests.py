from __future__ import annotations

import numpy as np

from tritonpy_ipc import Frame, Kind
from tritonpy_worker.inflight_requests import InflightRequests
from tritonpy_worker.ipc.windows import Windows


def cancellation(*numbers: int) -> Frame:
    return Frame(Kind.CANCEL, numbers, b"", np.empty(0, np.uint8), ())


def test_there_is_no_state_at_first_and_at_the_end() -> None:
    facts = InflightRequests(Windows(None, None))
    assert not facts
    facts.cancel(cancellation(1))
    facts.mark_unfinished(2)
    facts.begin(3)
    facts.trace(4, "{}")
    assert facts
    assert (facts.is_cancelled(1), facts.has_begun(3), facts.trace_of(4)) == (True, True, "{}")
    facts.end([1, 2, 3, 4, 5])
    assert not facts
    assert (facts.is_cancelled(1), facts.has_begun(3), facts.trace_of(4)) == (False, False, None)


def test_a_late_cancellation_is_removed() -> None:
    facts = InflightRequests(Windows(None, None))
    facts.cancel(cancellation(1))
    facts.tidy([])
    assert not facts.is_cancelled(1)


def test_a_cancellation_of_an_unfinished_request_is_kept() -> None:
    facts = InflightRequests(Windows(None, None))
    facts.mark_unfinished(1)
    facts.cancel(cancellation(1, 2))
    facts.tidy([])
    assert (facts.is_cancelled(1), facts.is_cancelled(2)) == (True, False)


def test_a_cancellation_of_a_waiting_request_is_kept() -> None:
    facts = InflightRequests(Windows(None, None))
    facts.cancel(cancellation(1))
    facts.tidy(["an execution"])
    assert facts.is_cancelled(1)
