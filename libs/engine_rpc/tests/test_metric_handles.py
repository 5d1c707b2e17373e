from __future__ import annotations

import pytest

from tritonpy_engine_rpc.metric_handles import (
    DropMessage,
    MetricFamilyMessage,
    MetricHandles,
    MetricMessage,
    MetricReadMessage,
    MetricValueMessage,
)
from tritonpy_ipc import ProtocolError
from tritonpy_metrics import CustomMetrics, ModelMetrics
from tritonpy_types.errors import Internal, InvalidArgument, Unsupported


@pytest.fixture
def registry():
    return CustomMetrics()


@pytest.fixture
def handles(registry):
    return MetricHandles(ModelMetrics(registry))


def test_metrics_are_made_changed_and_read_by_their_numbers(handles, registry):
    counters = handles.make_family(MetricFamilyMessage("served", "requests served", "COUNTER"))
    sizes = handles.make_family(MetricFamilyMessage("sizes", "how large", "HISTOGRAM"))
    red, blue = (
        handles.make(MetricMessage(counters, {"colour": colour})) for colour in ("red", "blue")
    )
    size = handles.make(MetricMessage(sizes, None, [1, 10]))
    handles.add(MetricValueMessage(red, 2))
    handles.add(MetricValueMessage(red, 3.5))
    handles.observe(MetricValueMessage(size, 7))
    assert (handles.value(MetricReadMessage(red)), handles.value(MetricReadMessage(blue))) == (
        5.5,
        0,
    )
    assert [(family.name, len(family.metrics)) for family in registry.snapshot()] == [
        ("served", 2),
        ("sizes", 1),
    ]


def test_a_gauge_is_set(handles):
    family = handles.make_family(MetricFamilyMessage("level", "", "GAUGE"))
    gauge = handles.make(MetricMessage(family))
    handles.set(MetricValueMessage(gauge, 4))
    handles.add(MetricValueMessage(gauge, -1))
    assert handles.value(MetricReadMessage(gauge)) == 3


def test_errors_of_the_metrics_are_raised(handles):
    family = handles.make_family(MetricFamilyMessage("served", "", "COUNTER"))
    counter = handles.make(MetricMessage(family))
    with pytest.raises(Unsupported):
        handles.set(MetricValueMessage(counter, 4))
    with pytest.raises(InvalidArgument):
        handles.add(MetricValueMessage(counter, -1))
    with pytest.raises(InvalidArgument):
        handles.make(MetricMessage(family, {"colour": 5}))
    with pytest.raises(InvalidArgument):
        handles.make_family(MetricFamilyMessage("served", "", "GAUGE"))


def test_a_dropped_metric_and_its_number_are_gone(handles, registry):
    family = handles.make_family(MetricFamilyMessage("served", "", "COUNTER"))
    one, other = (handles.make(MetricMessage(family, {"n": number})) for number in "12")
    handles.drop(DropMessage(one))
    assert [len(each.metrics) for each in registry.snapshot()] == [1]
    handles.drop_family(DropMessage(family))
    assert registry.snapshot() == []
    with pytest.raises(Internal, match="has been invalidated"):
        handles.add(MetricValueMessage(other, 1))
    handles.drop(DropMessage(other))
    for act in (
        lambda: handles.add(MetricValueMessage(one, 1)),
        lambda: handles.value(MetricReadMessage(other)),
        lambda: handles.make(MetricMessage(family)),
        lambda: handles.drop(DropMessage(one)),
        lambda: handles.drop_family(DropMessage(family)),
    ):
        with pytest.raises(ProtocolError, match="there is no metric or family with the number"):
            act()


def test_a_family_and_a_metric_are_not_mistaken_for_each_other(handles):
    family = handles.make_family(MetricFamilyMessage("served", "", "COUNTER"))
    metric = handles.make(MetricMessage(family))
    with pytest.raises(ProtocolError):
        handles.make(MetricMessage(metric))
    with pytest.raises(ProtocolError):
        handles.add(MetricValueMessage(family, 1))


def test_a_dead_worker_leaves_no_metric_and_removes_none_of_others(registry):
    model = ModelMetrics(registry)
    dies, lives = MetricHandles(model), MetricHandles(model)
    for handles, label in ((dies, "dies"), (lives, "lives"), (dies, "both"), (lives, "both")):
        family = handles.make_family(MetricFamilyMessage("served", "", "COUNTER"))
        handles.add(MetricValueMessage(handles.make(MetricMessage(family, {"by": label})), 1))
    dies.close()
    (family,) = registry.snapshot()
    assert {metric.labels["by"]: metric.value for metric in family.metrics} == {
        "lives": 1,
        "both": 2,
    }
    lives.close()
    assert registry.snapshot() == []
