from __future__ import annotations

import pytest

from tritonpy_ipc.credit_counter import CreditCounter
from tritonpy_ipc.windows import MAX_BYTES, MAX_RESPONSES
from tritonpy_types import FlowControl


def test_credit_is_returned_after_half_a_window_of_responses():
    counter = CreditCounter()
    assert [counter.add(0) for _ in range(MAX_RESPONSES)] == (
        [0] * (MAX_RESPONSES // 2 - 1) + [MAX_RESPONSES // 2]
    ) * 2


def test_credit_is_returned_after_half_a_window_of_bytes():
    counter = CreditCounter()
    assert [counter.add(MAX_BYTES // 4) for _ in range(4)] == [0, 2, 0, 2]
    assert counter.add(2 * MAX_BYTES) == 1


@pytest.mark.parametrize(
    "size",
    [
        0,
        1,
        MAX_BYTES // 3,
        MAX_BYTES // 2 - 1,
        MAX_BYTES // 2,
        MAX_BYTES * 2 // 3,
        MAX_BYTES,
        5 * MAX_BYTES,
    ],
)
def test_consuming_everything_always_returns_enough_credit(size):
    flow_control, counter, woken = FlowControl(MAX_RESPONSES, MAX_BYTES), CreditCounter(), []
    while flow_control.ready:
        flow_control.put(size)
    flow_control.when_ready(lambda: woken.append(1))
    for _ in range(flow_control.responses):
        for _ in range(counter.add(size)):
            flow_control.take()
    assert woken == [1]
