from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_queueing_fair.options import Tenant
from tritonpy_queueing_fair.quota import Quota

SECOND = 10**9


def test_without_limits_every_request_is_admitted():
    quota = Quota(Tenant(), 0)
    assert {quota.try_acquire(0) for _ in range(1000)} == {0.0}


def test_a_burst_is_followed_by_the_rate():
    quota = Quota(Tenant(requests_per_s=2, burst=3), 0)
    assert [quota.try_acquire(0) for _ in range(4)] == [0, 0, 0, 0.5]
    assert quota.try_acquire(SECOND // 4) == 0.25
    assert quota.try_acquire(SECOND // 2) == 0
    assert quota.try_acquire(100 * SECOND) == 0
    assert [quota.try_acquire(100 * SECOND) for _ in range(3)] == [0, 0, 0.5]


def test_a_rate_below_one_admits_one_request():
    quota = Quota(Tenant(requests_per_s=0.1), 0)
    assert (quota.try_acquire(0), quota.try_acquire(0)) == (0, 10)


def test_requests_in_flight_are_limited():
    quota = Quota(Tenant(concurrent=2), 0)
    assert [quota.try_acquire(0) for _ in range(3)] == [0, 0, 1]
    quota.release()
    assert quota.try_acquire(0) == 0


def test_the_exhausted_limit_is_named():
    quota = Quota(Tenant(requests_per_s=0.5, burst=2, concurrent=2), 0)
    assert [quota.try_acquire(0) for _ in range(2)] == [0, 0]
    assert quota.limit == "2 in flight"
    quota.release()
    assert (quota.try_acquire(0) > 0, quota.limit) == (True, "0.5 per second")


def test_a_rejected_request_does_not_use_the_quota():
    quota = Quota(Tenant(requests_per_s=1, burst=2, concurrent=1), 0)
    assert [quota.try_acquire(0) > 0 for _ in range(5)] == [False, True, True, True, True]
    quota.release()
    assert quota.try_acquire(0) == 0


def test_an_unused_quota_is_idle():
    quota = Quota(Tenant(requests_per_s=1, burst=2), 0)
    assert quota.is_idle(0)
    quota.try_acquire(0)
    assert not quota.is_idle(5 * SECOND)
    assert not quota.is_idle(0)  # a request is in flight
    quota.release()
    assert quota.is_idle(5 * SECOND)
    quota.try_acquire(5 * SECOND)
    quota.release()
    assert not quota.is_idle(5 * SECOND)


@given(st.lists(st.integers(0, SECOND), max_size=200), st.floats(0.5, 50), st.integers(1, 10))
def test_the_average_rate_never_exceeds_the_limit(pauses, rate, burst):
    quota, now, let_in = Quota(Tenant(requests_per_s=rate, burst=burst), 0), 0, 0
    for pause in pauses:
        now += pause
        wait_s = quota.try_acquire(now)
        let_in += not wait_s
        assert let_in <= burst + rate * now / SECOND + 1e-6
        if wait_s:
            assert wait_s == pytest.approx((1 - quota._requests.left) / rate)


def test_tokens_are_paid_afterwards():
    quota = Quota(Tenant(output_tokens_per_s=10, token_burst_s=2), 0)
    assert quota.try_acquire(0) == 0
    quota.use_tokens(500, 50, 0)  # more than the 20 that were left
    assert quota.try_acquire(0) == 3
    assert quota.limit == "10 output tokens per second"
    assert quota.try_acquire(2 * SECOND) == 1
    assert quota.try_acquire(3 * SECOND) == 0


def test_prompts_and_responses_have_rates_of_their_own():
    quota = Quota(Tenant(input_tokens_per_s=100, output_tokens_per_s=10, token_burst_s=1), 0)
    quota.use_tokens(300, 5, 0)
    assert (quota.try_acquire(0), quota.limit) == (2, "100 input tokens per second")
    quota.use_tokens(0, 105, 2 * SECOND)
    assert (quota.try_acquire(2 * SECOND) > 0, quota.limit) == (True, "10 output tokens per second")


def test_a_quota_with_a_debt_is_not_idle():
    quota = Quota(Tenant(input_tokens_per_s=1, token_burst_s=1), 0)
    quota.use_tokens(5, 0, 0)
    assert not quota.is_idle(4 * SECOND)
    assert quota.is_idle(5 * SECOND)
