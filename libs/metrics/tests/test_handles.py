from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tritonpy_metrics import CustomMetrics, Metric, MetricFamily, MetricKind, ModelMetrics
from tritonpy_types.errors import Internal, InvalidArgument

COUNTER, GAUGE, HISTOGRAM = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM


@pytest.fixture
def registry() -> CustomMetrics:
    return CustomMetrics()


@pytest.fixture
def model(registry: CustomMetrics) -> ModelMetrics:
    return ModelMetrics(registry)


def labels_by_family(registry: CustomMetrics) -> dict[str, list[dict[str, str]]]:
    return {
        family.name: [metric.labels for metric in family.metrics] for family in registry.snapshot()
    }


def test_the_same_labels_are_the_same_metric_in_any_order(model: ModelMetrics) -> None:
    family = model.family("c", "", COUNTER)
    one, other = family.metric({"a": "1", "b": "2"}), family.metric({"b": "2", "a": "1"})
    one.increment(2)
    other.increment(0.5)
    assert (one.value(), other.value()) == (2.5, 2.5)
    assert family.metric({"a": "1"}).value() == 0


def test_the_buckets_of_the_first_owner_stay(registry: CustomMetrics, model: ModelMetrics) -> None:
    family = model.family("h", "", HISTOGRAM)
    family.metric({}, [1, 2])
    family.metric({}, [5]).observe(1.5)
    found = registry.snapshot()[0].metrics[0].histogram
    assert found is not None
    assert (found.bounds, found.counts) == ([1, 2], [0, 1])


def test_a_metric_is_removed_with_its_last_owner_and_restarts_at_zero(
    registry: CustomMetrics, model: ModelMetrics
) -> None:
    other = ModelMetrics(registry)
    ours, theirs = (each.family("c", "", COUNTER).metric({"k": "v"}) for each in (model, other))
    ours.increment(1)
    ours.drop()
    assert theirs.value() == 1
    theirs.drop()
    assert labels_by_family(registry) == {}
    assert other.family("c", "", COUNTER).metric({"k": "v"}).value() == 0


def test_a_dropped_family_drops_its_metrics(registry: CustomMetrics, model: ModelMetrics) -> None:
    one, other = model.family("c", "", COUNTER), model.family("c", "", COUNTER)
    dropped, kept = one.metric({"k": "one"}), other.metric({"k": "other"})
    one.drop()
    assert labels_by_family(registry) == {"c": [{"k": "other"}]}
    kept.increment(1)
    with pytest.raises(Internal):
        dropped.increment(1)


USES: dict[str, tuple[MetricKind, Callable[[Metric], object], str]] = {
    "increment": (COUNTER, lambda metric: metric.increment(1), "increment"),
    "set": (GAUGE, lambda metric: metric.set(1), "set"),
    "observe": (HISTOGRAM, lambda metric: metric.observe(1), "set"),
    "value": (GAUGE, lambda metric: metric.value(), "get"),
}


@pytest.mark.parametrize("name", USES)
def test_a_dropped_metric_raises(model: ModelMetrics, name: str) -> None:
    kind, use, verb = USES[name]
    metric = model.family("m", "", kind).metric({}, [1.0] if kind is HISTOGRAM else None)
    use(metric)
    metric.drop()
    with pytest.raises(Internal) as refused:
        use(metric)
    assert refused.value.message == f"Could not {verb} metric value. Metric has been invalidated."


def test_a_dropped_family_creates_no_metrics(registry: CustomMetrics, model: ModelMetrics) -> None:
    family = model.family("c", "", COUNTER)
    family.drop()
    with pytest.raises(Internal, match="MetricFamily has been invalidated"):
        family.metric()
    assert labels_by_family(registry) == {}


def test_dropping_twice_has_no_effect_on_other_owners(
    registry: CustomMetrics, model: ModelMetrics
) -> None:
    other = ModelMetrics(registry).family("c", "", COUNTER)
    other.metric()
    family = model.family("c", "", COUNTER)
    metric = family.metric()
    for _ in range(2):
        metric.drop()
        family.drop()
    metric.drop()
    model.close()
    assert labels_by_family(registry) == {"c": [{}]}


def test_the_metrics_of_a_model_are_removed_when_it_is_unloaded(
    registry: CustomMetrics, model: ModelMetrics
) -> None:
    kept = ModelMetrics(registry).family("b", "", GAUGE).metric({"of": "another"})
    for name in ("a", "b"):
        model.family(name, "", GAUGE).metric({"of": "this"})
    model.close()
    assert labels_by_family(registry) == {"b": [{"of": "another"}]}
    kept.set(1)
    with pytest.raises(Internal, match="its model was unloaded"):
        model.family("a", "", GAUGE)


def test_a_refused_metric_leaves_nothing_behind(
    registry: CustomMetrics, model: ModelMetrics
) -> None:
    family = model.family("c", "", COUNTER)
    for labels, buckets in (({"0": ""}, None), ({}, [1.0])):
        with pytest.raises(InvalidArgument):
            family.metric(labels, buckets)
    assert labels_by_family(registry) == {}


@pytest.mark.parametrize("operation", ["set", "increment"])
def test_a_value_that_is_not_a_number_is_refused_and_changes_nothing(
    model: ModelMetrics, operation: str
) -> None:
    metric = model.family("g", "", GAUGE).metric()
    with pytest.raises((ValueError, TypeError)):
        getattr(metric, operation)("much")
    metric.increment(1)
    assert metric.value() == 1


def test_concurrent_increments_are_all_counted(
    registry: CustomMetrics, model: ModelMetrics
) -> None:
    threads, rounds = 4, 300
    together = threading.Barrier(threads)
    total = model.family("total", "", COUNTER).metric()

    def work(_number: int) -> None:
        together.wait(10)
        own = ModelMetrics(registry)
        for _ in range(rounds):
            family: MetricFamily = own.family("temporary", "", HISTOGRAM)
            family.metric({}, [1.0]).observe(1)
            own.family("total", "", COUNTER).metric().increment(1)
            registry.snapshot()
            family.drop()
        own.close()

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    assert total.value() == threads * rounds
    assert labels_by_family(registry) == {"total": [{}]}
