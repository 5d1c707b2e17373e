from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from tritonpy_metrics import CustomMetrics, ModelMetrics
from tritonpy_metrics.registry import (
    SERVER_METRICS,
    Cell,
    FamilySnapshot,
    HistogramSnapshot,
    MetricKind,
    MetricSnapshot,
    check_name,
    make_cell,
    sorted_labels,
)
from tritonpy_types.errors import AlreadyExists, InvalidArgument, Unsupported

COUNTER, GAUGE = MetricKind.COUNTER, MetricKind.GAUGE


@pytest.fixture
def registry() -> CustomMetrics:
    return CustomMetrics()


def test_a_snapshot_is_in_the_order_of_creation(registry: CustomMetrics) -> None:
    model = ModelMetrics(registry)
    second = model.family("b", "the first", COUNTER)
    model.family("a", "the second", GAUGE).metric().set(3)
    second.metric({"n": "2", "m": "x"})
    second.metric({"n": "1"}).increment(1)
    assert registry.snapshot() == [
        FamilySnapshot(
            "b",
            "the first",
            COUNTER,
            [MetricSnapshot({"m": "x", "n": "2"}), MetricSnapshot({"n": "1"}, 1)],
        ),
        FamilySnapshot("a", "the second", GAUGE, [MetricSnapshot({}, 3)]),
    ]
    assert list(registry.snapshot()[0].metrics[0].labels) == ["m", "n"]


def test_a_family_without_metrics_is_omitted(registry: CustomMetrics) -> None:
    ModelMetrics(registry).family("empty", "", COUNTER)
    assert registry.snapshot() == []


def test_two_models_share_a_family_with_the_first_description(registry: CustomMetrics) -> None:
    one, other = ModelMetrics(registry), ModelMetrics(registry)
    one.family("shared", "first", COUNTER).metric({"model": "one"}).increment(1)
    other.family("shared", "second", COUNTER).metric({"model": "other"}).increment(2)
    [family] = registry.snapshot()
    assert family.description == "first"
    assert [(metric.labels["model"], metric.value) for metric in family.metrics] == [
        ("one", 1),
        ("other", 2),
    ]


def test_a_name_has_one_kind_while_it_has_owners(registry: CustomMetrics) -> None:
    model = ModelMetrics(registry)
    family = model.family("thing", "a counter", COUNTER)
    with pytest.raises(InvalidArgument, match=r"^Family name already exists with different type$"):
        ModelMetrics(registry).family("thing", "a gauge", GAUGE)
    family.drop()
    model.family("thing", "a gauge", GAUGE).metric()
    assert [(found.kind, found.description) for found in registry.snapshot()] == [
        (GAUGE, "a gauge")
    ]


@pytest.mark.parametrize(
    ("name", "error"), [("no name", InvalidArgument), ("nv_inference_count", AlreadyExists)]
)
def test_a_refused_name_leaves_nothing_behind(
    registry: CustomMetrics, name: str, error: type[Exception]
) -> None:
    for _ in range(2):
        with pytest.raises(error):
            ModelMetrics(registry).family(name, "", COUNTER)
    assert registry.snapshot() == []


def test_families_of_sources_come_last(registry: CustomMetrics) -> None:
    theirs = FamilySnapshot("theirs", "", GAUGE, [MetricSnapshot({}, 5)])
    registry.add_source(lambda: [theirs])
    ModelMetrics(registry).family("ours", "", COUNTER).metric()
    assert [family.name for family in registry.snapshot()] == ["ours", "theirs"]
    assert registry.snapshot()[-1] is theirs


@pytest.mark.parametrize(
    "name", ["requests", "Requests_2", "_hidden", "vllm:latency_s", "things_total", "nv_llm_tokens"]
)
def test_a_valid_name_is_accepted(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize(
    "name", ["", "0things", "two words", "dash-ed", "__internal", "straße", "line\n", "x{y}"]
)
def test_an_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^Invalid metric name$"):
        check_name(name)


@pytest.mark.parametrize(
    "name", ["nv_inference_count", "nv_inference_queue_summary_us", "nv_cache_num_hits_per_model"]
)
def test_the_servers_own_names_are_refused(name: str) -> None:
    assert name in SERVER_METRICS
    with pytest.raises(
        AlreadyExists,
        match=f"Family name already exists: '{name}' is a metric of the server itself",
    ):
        check_name(name)


def test_labels_are_sorted_by_name() -> None:
    assert sorted_labels({"b": "1", "a": "2", "B": ""}, MetricKind.GAUGE) == (
        ("B", ""),
        ("a", "2"),
        ("b", "1"),
    )


@pytest.mark.parametrize("name", ["", "0", "__x", "a:b", "a b", "é"])
def test_an_invalid_label_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^Invalid label name$"):
        sorted_labels({name: "x"}, MetricKind.GAUGE)


def test_the_bucket_label_is_reserved_for_histograms() -> None:
    assert sorted_labels({"le": "x"}, MetricKind.COUNTER) == (("le", "x"),)
    with pytest.raises(InvalidArgument, match="Invalid label name"):
        sorted_labels({"le": "x"}, MetricKind.HISTOGRAM)


def test_a_label_value_must_be_text() -> None:
    with pytest.raises(InvalidArgument) as refused:
        sorted_labels({"version": 1}, MetricKind.GAUGE)  # type: ignore[dict-item]
    assert refused.value.message == (
        "Parameter [version] must have a type of TRITONSERVER_PARAMETER_STRING to be added as a label."
    )


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
def test_an_unsupported_operation_is_refused(
    kind: MetricKind, operation: str, arguments: Any, name: str
) -> None:
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


@pytest.mark.parametrize(
    "bounds", [[2, 1], [1, 1], [math.nan], [1, math.nan, 2], [math.inf, math.inf]]
)
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


def test_a_snapshot_can_be_encoded_and_decoded() -> None:
    metrics = [
        MetricSnapshot({"a": "b"}, -math.inf),
        MetricSnapshot({}, 0, HistogramSnapshot([0.5], [1], 2, math.inf)),
    ]
    family = FamilySnapshot("f", "of all kinds", MetricKind.HISTOGRAM, metrics)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(family), type=FamilySnapshot) == family


def test_a_kind_has_prometheus_type_and_tritons_constant() -> None:
    assert {kind.value: kind.triton_name for kind in MetricKind} == {
        "counter": "TRITONSERVER_METRIC_KIND_COUNTER",
        "gauge": "TRITONSERVER_METRIC_KIND_GAUGE",
        "histogram": "TRITONSERVER_METRIC_KIND_HISTOGRAM",
    }
