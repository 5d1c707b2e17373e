from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_queueing_fair.options import Tenant
from tritonpy_queueing_fair.quota import Quota

SECOND = 10**9


def test_without_a_quota_everybody_is_let_in():
    quota = Quota(Tenant(), 0)
    assert {quota.take(0) for _ in range(1000)} == {0.0}


def test_so_many_at_once_and_then_one_after_the_other():
    quota = Quota(Tenant(requests_per_s=2, burst=3), 0)
    assert [quota.take(0) for _ in range(4)] == [0, 0, 0, 0.5]
    assert quota.take(SECOND // 4) == 0.25
    assert quota.take(SECOND // 2) == 0
    assert quota.take(100 * SECOND) == 0
    assert [quota.take(100 * SECOND) for _ in range(3)] == [0, 0, 0.5]


def test_a_rate_below_one_lets_one_in():
    quota = Quota(Tenant(requests_per_s=0.1), 0)
    assert (quota.take(0), quota.take(0)) == (0, 10)


def test_open_requests_are_bounded():
    quota = Quota(Tenant(concurrent=2), 0)
    assert [quota.take(0) for _ in range(3)] == [0, 0, 1]
    quota.give_back()
    assert quota.take(0) == 0


def test_what_is_used_up_has_a_name():
    quota = Quota(Tenant(requests_per_s=0.5, burst=2, concurrent=2), 0)
    assert [quota.take(0) for _ in range(2)] == [0, 0]
    assert quota.limit == "2 open at the same time"
    quota.give_back()
    assert (quota.take(0) > 0, quota.limit) == (True, "0.5 per second")


def test_a_refused_request_uses_nothing_up():
    quota = Quota(Tenant(requests_per_s=1, burst=2, concurrent=1), 0)
    assert [quota.take(0) > 0 for _ in range(5)] == [False, True, True, True, True]
    quota.give_back()
    assert quota.take(0) == 0


def test_idle_is_who_has_everything_back():
    quota = Quota(Tenant(requests_per_s=1, burst=2), 0)
    assert quota.is_idle(0)
    quota.take(0)
    assert not quota.is_idle(5 * SECOND)
    assert not quota.is_idle(0)  # it is open
    quota.give_back()
    assert quota.is_idle(5 * SECOND)
    quota.take(5 * SECOND)
    quota.give_back()
    assert not quota.is_idle(5 * SECOND)


@given(st.lists(st.integers(0, SECOND), max_size=200), st.floats(0.5, 50), st.integers(1, 10))
def test_over_time_the_rate_is_never_passed(pauses, rate, burst):
    quota, now, let_in = Quota(Tenant(requests_per_s=rate, burst=burst), 0), 0, 0
    for pause in pauses:
        now += pause
        wait_s = quota.take(now)
        let_in += not wait_s
        assert let_in <= burst + rate * now / SECOND + 1e-6
        if wait_s:
            assert wait_s == pytest.approx((1 - quota._left) / rate)
