from __future__ import annotations

import pytest

from tritonpy_frontend_h2.http2.codes import ENHANCE_YOUR_CALM
from tritonpy_frontend_h2.http2.faults import ConnectionFault
from tritonpy_frontend_h2.http2.patience import Patience


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def spend(patience, count):
    for _ in range(count):
        patience.charge("x")


def test_it_ends():
    patience = Patience(Clock())
    spend(patience, 1000)
    with pytest.raises(ConnectionFault) as fault:
        patience.charge("resets")
    assert (fault.value.code, fault.value.text) == (ENHANCE_YOUR_CALM, "too many resets")


def test_time_brings_it_back_but_not_more_than_there_was():
    clock = Clock()
    patience = Patience(clock)
    spend(patience, 1000)
    clock.now = 2.0
    spend(patience, 200)
    with pytest.raises(ConnectionFault):
        patience.charge("x")
    clock.now = 1e6
    spend(patience, 1000)
    with pytest.raises(ConnectionFault):
        patience.charge("x")


def test_every_answered_call_brings_some_back():
    patience = Patience(Clock())
    for _ in range(10_000):
        patience.earn()
        patience.charge("x")
