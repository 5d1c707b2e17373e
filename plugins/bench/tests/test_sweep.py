from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_bench.sweep import LoadRange, Outcome, next_level, parse_range


def measured_levels(levels, kept, binary=False):
    """Return the measured levels; `kept` decides which levels keep the threshold."""
    done = []
    while (level := next_level(levels, done, binary)) is not None:
        done.append(Outcome(level, kept(level)))
        assert len(done) < 1000
    return [each.level for each in done]


def test_ranges_are_read():
    assert parse_range("4") == LoadRange(4, 4, 1)
    assert parse_range("1:8") == LoadRange(1, 8, 1)
    assert parse_range("0.5:0:2.5") == LoadRange(0.5, 0, 2.5)


@pytest.mark.parametrize("text", ["", "a", "1:2:3:4", "0", "-1:5", "5:4", "1:2:0"])
def test_an_invalid_range_is_rejected(text):
    with pytest.raises(ValueError, match=r".+"):
        parse_range(text)


def test_a_sweep_ends_at_its_end_or_the_first_slow_level():
    assert measured_levels(LoadRange(1, 9, 4), lambda level: True) == [1, 5, 9]
    assert measured_levels(LoadRange(1, 8, 4), lambda level: True) == [1, 5]
    assert measured_levels(LoadRange(1, 0, 1), lambda level: level < 4) == [1, 2, 3, 4]
    assert measured_levels(LoadRange(2, 9, 1), lambda level: False) == [2]


def test_fractional_steps_do_not_accumulate_rounding_errors():
    assert measured_levels(LoadRange(0.1, 1.0, 0.1), lambda level: True)[-1] == pytest.approx(1.0)


@given(st.integers(1, 50), st.integers(0, 400), st.integers(1, 7), st.integers(0, 500))
def test_bisection_finds_the_highest_level_within_the_threshold(start, length, step, limit):
    levels = LoadRange(start, start + length, step)
    grid = range(start, start + length + 1, step)
    measured = measured_levels(levels, lambda level: level <= limit, binary=True)
    good = [level for level in grid if level <= limit]
    assert set(measured) <= set(grid)
    assert len(measured) == len(set(measured)) <= 2 + len(grid).bit_length()
    if good:
        assert max(level for level in measured if level <= limit) == good[-1]
    else:
        assert measured == [start]
