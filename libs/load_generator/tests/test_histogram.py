from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_load_generator.figures.histogram import (
    MAX_NS,
    LatencyHistogram,
    bucket_middle,
    make_histogram,
    merge,
)

durations = st.lists(st.integers(0, MAX_NS) | st.integers(0, 10_000_000), max_size=200)


@given(durations.filter(len), st.floats(0, 100))
def test_a_percentile_is_accurate_to_a_thousandth(values, percent):
    rank = max(math.ceil(percent / 100 * len(values)), 1)
    exact = sorted(values)[rank - 1]
    assert make_histogram(values).percentile(percent) == pytest.approx(exact, rel=1e-3, abs=0.5)


@given(durations)
def test_count_sum_least_and_most_are_exact(values):
    made = make_histogram(values)
    assert (made.total, made.sum, sum(made.buckets.values())) == (
        len(values),
        sum(values),
        len(values),
    )
    if values:
        assert (made.least, made.most) == (min(values), max(values))


@given(st.lists(durations, max_size=4))
def test_merging_is_the_same_as_counting_everything_at_once(parts):
    assert merge(make_histogram(part) for part in parts) == make_histogram(
        [value for part in parts for value in part]
    )


@given(durations, st.lists(st.floats(0, 100), min_size=1).map(sorted))
def test_percentiles_rise_and_do_not_depend_on_being_requested_together(values, percents):
    made = make_histogram(values)
    found = made.percentiles(percents)
    assert found == sorted(found)
    assert found == [made.percentile(percent) for percent in percents]


@given(durations)
def test_a_histogram_survives_serialization(values):
    made = make_histogram(values)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(made), type=LatencyHistogram) == made


def test_its_memory_is_bounded():
    spread = [1 << power for power in range(60)] + [(1 << power) - 1 for power in range(60)]
    assert max(make_histogram(spread).buckets) < 33_792
    assert make_histogram([1 << 50]).most == MAX_NS


def test_negative_durations_count_as_zero_and_an_empty_histogram_has_zeros():
    assert make_histogram([-5]).most == 0
    empty = make_histogram([])
    assert (empty.mean, empty.percentile(99)) == (0.0, 0.0)


@given(st.integers(0, 33_791))
def test_the_middle_of_a_bucket_lies_in_it(index):
    assert make_histogram([bucket_middle(index)]).buckets == {index: 1}


def test_durations_above_a_limit_are_counted():
    histogram = make_histogram([1_000, 5_000_000, 20_000_000, 21_000_000])
    assert histogram.count_above(10_000_000) == 2
    assert histogram.count_above(0) == 4
    assert histogram.count_above(30_000_000) == 0
