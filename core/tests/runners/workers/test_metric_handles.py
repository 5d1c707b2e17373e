from __future__ import annotations

import pytest

from tritonpy.custom_metrics import CustomMetrics, ModelMetrics
from tritonpy.errors import Internal, InvalidArgument, Unsupported
from tritonpy.ipc import ProtocolError
from tritonpy.runners.workers.metric_handles import (
    Dropped,
    FamilySaid,
    MetricHandles,
    MetricRead,
    MetricSaid,
    ValueSaid,
)


@pytest.fixture
def registry():
    return CustomMetrics()


@pytest.fixture
def handles(registry):
    return MetricHandles(ModelMetrics(registry))


def test_metrics_are_made_changed_and_read_by_their_numbers(handles, registry):
    counters = handles.make_family(FamilySaid("served", "what was served", "COUNTER"))
    sizes = handles.make_family(FamilySaid("sizes", "how large", "HISTOGRAM"))
    red, blue = (handles.make(MetricSaid(counters, {"colour": colour})) for colour in ("red", "blue"))
    size = handles.make(MetricSaid(sizes, None, [1, 10]))
    handles.add(ValueSaid(red, 2))
    handles.add(ValueSaid(red, 3.5))
    handles.observe(ValueSaid(size, 7))
    assert (handles.value(MetricRead(red)), handles.value(MetricRead(blue))) == (5.5, 0)
    assert [(family.name, len(family.metrics)) for family in registry.snapshot()] == [("served", 2), ("sizes", 1)]


def test_a_gauge_is_set(handles):
    family = handles.make_family(FamilySaid("level", "", "GAUGE"))
    gauge = handles.make(MetricSaid(family))
    handles.set(ValueSaid(gauge, 4))
    handles.add(ValueSaid(gauge, -1))
    assert handles.value(MetricRead(gauge)) == 3


def test_what_the_metrics_refuse_is_raised(handles):
    family = handles.make_family(FamilySaid("served", "", "COUNTER"))
    counter = handles.make(MetricSaid(family))
    with pytest.raises(Unsupported):
        handles.set(ValueSaid(counter, 4))
    with pytest.raises(InvalidArgument):
        handles.add(ValueSaid(counter, -1))
    with pytest.raises(InvalidArgument):
        handles.make(MetricSaid(family, {"colour": 5}))
    with pytest.raises(InvalidArgument):
        handles.make_family(FamilySaid("served", "", "GAUGE"))


def test_what_is_dropped_is_gone_and_so_is_its_number(handles, registry):
    family = handles.make_family(FamilySaid("served", "", "COUNTER"))
    one, other = (handles.make(MetricSaid(family, {"n": number})) for number in "12")
    handles.drop(Dropped(one))
    assert [len(each.metrics) for each in registry.snapshot()] == [1]
    handles.drop_family(Dropped(family))
    assert registry.snapshot() == []
    with pytest.raises(Internal, match="has been invalidated"):
        handles.add(ValueSaid(other, 1))
    handles.drop(Dropped(other))
    for act in (
        lambda: handles.add(ValueSaid(one, 1)),
        lambda: handles.value(MetricRead(other)),
        lambda: handles.make(MetricSaid(family)),
        lambda: handles.drop(Dropped(one)),
        lambda: handles.drop_family(Dropped(family)),
    ):
        with pytest.raises(ProtocolError, match="there is no metric or family with the number"):
            act()


def test_a_family_and_a_metric_are_not_mistaken_for_each_other(handles):
    family = handles.make_family(FamilySaid("served", "", "COUNTER"))
    metric = handles.make(MetricSaid(family))
    with pytest.raises(ProtocolError):
        handles.make(MetricSaid(metric))
    with pytest.raises(ProtocolError):
        handles.add(ValueSaid(family, 1))


def test_a_worker_that_dies_leaves_no_metric_behind_and_takes_none_of_its_siblings(registry):
    model = ModelMetrics(registry)
    dies, lives = MetricHandles(model), MetricHandles(model)
    for handles, label in ((dies, "dies"), (lives, "lives"), (dies, "both"), (lives, "both")):
        family = handles.make_family(FamilySaid("served", "", "COUNTER"))
        handles.add(ValueSaid(handles.make(MetricSaid(family, {"by": label})), 1))
    dies.close()
    (family,) = registry.snapshot()
    assert {metric.labels["by"]: metric.value for metric in family.metrics} == {"lives": 1, "both": 2}
    lives.close()
    assert registry.snapshot() == []
