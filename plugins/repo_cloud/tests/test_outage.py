from __future__ import annotations

from tritonpy_repo_cloud.backoff import RetryBackoff
from tritonpy_repo_cloud.outage import StoreOutage
from tritonpy_repo_cloud.store_errors import FailureKind, StoreError

GONE, OTHER = (
    StoreError(FailureKind.UNREACHABLE, "gone"),
    StoreError(FailureKind.UNREACHABLE, "other"),
)


def test_the_delay_grows_with_each_failure():
    absence = StoreOutage(RetryBackoff(10, 100))
    assert not absence.is_active(0)
    absence.record_failure(GONE, 0)
    assert absence.is_active(9.9)
    assert not absence.is_active(10)
    absence.record_failure(GONE, 10)
    assert absence.is_active(29.9)
    assert not absence.is_active(30)


def test_a_success_ends_the_outage_and_resets_the_delay():
    absence = StoreOutage(RetryBackoff(10, 100))
    absence.record_failure(GONE, 0)
    assert absence.record_success()
    assert not absence.record_success()
    assert not absence.is_active(1)
    assert absence.record_failure(GONE, 100)
    assert not absence.is_active(110)


def test_a_repeated_failure_is_reported_once():
    absence = StoreOutage(RetryBackoff(10, 100))
    assert [absence.record_failure(each, 0) for each in (GONE, GONE, OTHER, OTHER, GONE)] == [
        True,
        False,
        True,
        False,
        True,
    ]
