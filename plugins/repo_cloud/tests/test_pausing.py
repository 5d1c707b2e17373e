from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_repo_cloud.pausing import Pauses

PAUSES = Pauses(0.5, 60.0)


def test_each_pause_is_twice_the_one_before():
    assert [PAUSES.after(failures) for failures in range(1, 10)] == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]


@given(st.integers(1, 10_000))
def test_they_are_spread_but_never_longer_and_never_nothing(failures):
    assert PAUSES.after(failures) / 2 <= PAUSES.spread_after(failures) <= PAUSES.after(failures) <= 60
