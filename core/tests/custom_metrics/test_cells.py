from __future__ import annotations

import math
from typing import Any

import pytest

from tritonpy.custom_metrics.cells import Cell, make_cell
from tritonpy.custom_metrics.kind import MetricKind
from tritonpy.custom_metrics.snapshot import HistogramSnapshot
from tritonpy.errors import InvalidArgument, Unsupported

COUNTER, GAUGE, HISTOGRAM = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM


def cell(kind: MetricKind) -> Cell:
    return make_cell(kind, [1.0] if kind is HISTOGRAM else None)


def histogram(bounds: list[float], *observed: float) -> HistogramSnapshot:
    made = make_cell(HISTOGRAM, bounds)
    for value in observed:
        made.observe(value)
    found = made.snapshot({}).histogram
    assert found is not None
    return found


def test_a_counter_adds_up() -> None:
    counter = cell(COUNTER)
    counter.increment(2)
    counter.increment(0.5)
    counter.increment(0)
    assert counter.value() == 2.5
    assert counter.snapshot({"a": "b"}).value == 2.5


def test_a_counter_never_decreases() -> None:
    counter = cell(COUNTER)
    counter.increment(1)
    with pytest.raises(InvalidArgument) as refused:
        counter.increment(-0.5)
    assert refused.value.message == (
        "TRITONSERVER_METRIC_KIND_COUNTER can only be incremented monotonically by non-negative values."
    )
    assert counter.value() == 1


def test_a_gauge_can_be_set_and_incremented() -> None:
    gauge = cell(GAUGE)
    gauge.increment(-1)
    assert gauge.value() == -1
    gauge.set(7)
    gauge.increment(0.5)
    assert gauge.value() == 7.5


@pytest.mark.parametrize(
    ("kind", "operation", "arguments", "name"),
    [
        (COUNTER, "set", (1,), "Set"),
        (COUNTER, "observe", (1,), "Observe"),
        (GAUGE, "observe", (1,), "Observe"),
        (HISTOGRAM, "increment", (1,), "Increment"),
        (HISTOGRAM, "set", (1,), "Set"),
        (HISTOGRAM, "value", (), "Value"),
    ],
)
def test_an_unsupported_operation_is_refused(kind: MetricKind, operation: str, arguments: Any, name: str) -> None:
    with pytest.raises(Unsupported) as refused:
        getattr(cell(kind), operation)(*arguments)
    assert refused.value.message == f"{kind.triton_name} does not support {name}"


def test_a_histogram_counts_observations_up_to_each_bound() -> None:
    found = histogram([0.1, 1, 2.5], 0.05, 0.1, 1.5, 100, -3)
    assert (found.bounds, found.counts, found.count) == ([0.1, 1, 2.5], [3, 3, 4], 5)
    assert found.sum == pytest.approx(98.65)


def test_a_histogram_without_bounds_counts_all_observations() -> None:
    assert histogram([], 1, 2) == HistogramSnapshot([], [], 2, 3.0)


def test_the_infinite_bucket_may_be_given() -> None:
    assert histogram([1, math.inf], 2) == HistogramSnapshot([1], [0], 1, 2.0)


def test_nan_is_counted_and_makes_the_sum_nan() -> None:
    found = histogram([1, 2], math.nan)
    assert (found.counts, found.count) == ([1, 1], 1)
    assert math.isnan(found.sum)


@pytest.mark.parametrize("bounds", [[2, 1], [1, 1], [math.nan], [1, math.nan, 2], [math.inf, math.inf]])
def test_bounds_that_do_not_ascend_are_refused(bounds: list[float]) -> None:
    with pytest.raises(InvalidArgument, match=r"^Bucket Boundaries must be strictly sorted$"):
        make_cell(HISTOGRAM, bounds)


@pytest.mark.parametrize(
    ("kind", "buckets", "text"),
    [
        (HISTOGRAM, None, "Bucket boundaries not found in Metric args."),
        (COUNTER, [], "Unexpected args found in counter Metric constructor."),
        (GAUGE, [1.0], "Unexpected args found in gauge Metric constructor."),
    ],
)
def test_buckets_belong_to_histograms(kind: MetricKind, buckets: Any, text: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        make_cell(kind, buckets)
    assert refused.value.message == text
