from __future__ import annotations

from tritonpy_repo_cloud.absence import Absence
from tritonpy_repo_cloud.failure import Kind, StoreFailure
from tritonpy_repo_cloud.pausing import Pauses

GONE, OTHER = StoreFailure(Kind.AWAY, "gone"), StoreFailure(Kind.AWAY, "other")


def test_a_store_that_fails_is_left_alone_for_longer_and_longer():
    absence = Absence(Pauses(10, 100))
    assert not absence.lasts(0)
    absence.failed(GONE, 0)
    assert absence.lasts(9.9)
    assert not absence.lasts(10)
    absence.failed(GONE, 10)
    assert absence.lasts(29.9)
    assert not absence.lasts(30)


def test_an_answer_ends_it_and_the_next_failure_begins_anew():
    absence = Absence(Pauses(10, 100))
    absence.failed(GONE, 0)
    assert absence.answered()
    assert not absence.answered()
    assert not absence.lasts(1)
    assert absence.failed(GONE, 100)
    assert not absence.lasts(110)


def test_the_same_failure_is_news_once():
    absence = Absence(Pauses(10, 100))
    assert [absence.failed(each, 0) for each in (GONE, GONE, OTHER, OTHER, GONE)] == [True, False, True, False, True]
