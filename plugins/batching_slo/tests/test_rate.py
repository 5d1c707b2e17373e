from __future__ import annotations

import pytest

from tritonpy_batching_slo.rate import Rate


def test_one_batch_has_no_rate():
    rate = Rate()
    assert rate.value == 0
    rate.learn(4, 1000)
    assert rate.value == 0


def test_the_rate_follows_the_arrivals():
    rate = Rate()
    for step in range(200):
        rate.learn(4, 1000 * (step + 1))
    assert rate.value == pytest.approx(0.004)
    for step in range(200):
        rate.learn(8, 200_000 + 1000 * (step + 1))
    assert rate.value == pytest.approx(0.008, rel=0.01)


def test_two_batches_at_the_same_time_do_not_divide_by_zero():
    rate = Rate()
    rate.learn(1, 5)
    rate.learn(1, 5)
    assert rate.value > 0
