from __future__ import annotations

import pytest

from tritonpy_frontend_h2.http2.abuse_budget import AbuseBudget
from tritonpy_frontend_h2.http2.codes import ENHANCE_YOUR_CALM
from tritonpy_frontend_h2.http2.errors import Http2ConnectionError


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def spend(budget, count):
    for _ in range(count):
        budget.charge("x")


def test_the_credit_is_limited():
    budget = AbuseBudget(Clock())
    spend(budget, 1000)
    with pytest.raises(Http2ConnectionError) as error:
        budget.charge("resets")
    assert (error.value.code, error.value.text) == (ENHANCE_YOUR_CALM, "too many resets")


def test_time_refills_the_credit_up_to_its_maximum():
    clock = Clock()
    budget = AbuseBudget(clock)
    spend(budget, 1000)
    clock.now = 2.0
    spend(budget, 200)
    with pytest.raises(Http2ConnectionError):
        budget.charge("x")
    clock.now = 1e6
    spend(budget, 1000)
    with pytest.raises(Http2ConnectionError):
        budget.charge("x")


def test_every_completed_call_refunds_credit():
    budget = AbuseBudget(Clock())
    for _ in range(10_000):
        budget.refund()
        budget.charge("x")
