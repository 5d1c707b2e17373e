from __future__ import annotations

import pytest

from tritonpy.custom_metrics import CustomMetrics, FamilySnapshot, MetricKind, MetricSnapshot, ModelMetrics
from tritonpy.errors import AlreadyExists, InvalidArgument

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
            "b", "the first", COUNTER, [MetricSnapshot({"m": "x", "n": "2"}), MetricSnapshot({"n": "1"}, 1)]
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
    assert [(metric.labels["model"], metric.value) for metric in family.metrics] == [("one", 1), ("other", 2)]


def test_a_name_has_one_kind_while_it_has_owners(registry: CustomMetrics) -> None:
    model = ModelMetrics(registry)
    family = model.family("thing", "a counter", COUNTER)
    with pytest.raises(InvalidArgument, match=r"^Family name already exists with different type$"):
        ModelMetrics(registry).family("thing", "a gauge", GAUGE)
    family.drop()
    model.family("thing", "a gauge", GAUGE).metric()
    assert [(found.kind, found.description) for found in registry.snapshot()] == [(GAUGE, "a gauge")]


@pytest.mark.parametrize(("name", "error"), [("no name", InvalidArgument), ("nv_inference_count", AlreadyExists)])
def test_a_refused_name_leaves_nothing_behind(registry: CustomMetrics, name: str, error: type[Exception]) -> None:
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
