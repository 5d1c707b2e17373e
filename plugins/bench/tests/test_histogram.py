from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_bench.figures.histogram import MAX_NS, Histogram, histogram, merged, middle

durations = st.lists(st.integers(0, MAX_NS) | st.integers(0, 10_000_000), max_size=200)


@given(durations.filter(len), st.floats(0, 100))
def test_a_percentile_is_right_to_a_thousandth(values, percent):
    rank = max(math.ceil(percent / 100 * len(values)), 1)
    exact = sorted(values)[rank - 1]
    assert histogram(values).percentile(percent) == pytest.approx(exact, rel=1e-3, abs=0.5)


@given(durations)
def test_count_sum_least_and_most_are_exact(values):
    told = histogram(values)
    assert (told.total, told.sum, sum(told.buckets.values())) == (len(values), sum(values), len(values))
    if values:
        assert (told.least, told.most) == (min(values), max(values))


@given(st.lists(durations, max_size=4))
def test_merging_is_the_same_as_counting_everything_at_once(parts):
    assert merged(histogram(part) for part in parts) == histogram([value for part in parts for value in part])


@given(durations, st.lists(st.floats(0, 100), min_size=1).map(sorted))
def test_percentiles_rise_and_those_asked_at_once_are_those_asked_alone(values, percents):
    told = histogram(values)
    found = told.percentiles(percents)
    assert found == sorted(found)
    assert found == [told.percentile(percent) for percent in percents]


@given(durations)
def test_it_survives_its_journey_between_processes(values):
    told = histogram(values)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(told), type=Histogram) == told


def test_its_memory_is_bounded():
    spread = [1 << power for power in range(60)] + [(1 << power) - 1 for power in range(60)]
    assert max(histogram(spread).buckets) < 33_792
    assert histogram([1 << 50]).most == MAX_NS


def test_what_is_negative_counts_as_nothing_and_nothing_has_figures_of_zero():
    assert histogram([-5]).most == 0
    empty = histogram([])
    assert (empty.mean, empty.percentile(99)) == (0.0, 0.0)


@given(st.integers(0, 33_791))
def test_the_middle_of_a_bucket_lies_in_it(index):
    assert histogram([middle(index)]).buckets == {index: 1}
