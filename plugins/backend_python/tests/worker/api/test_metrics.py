from __future__ import annotations

import gc
import math
from itertools import count

import numpy as np
import pytest

from tritonpy_worker.api.errors import TritonModelException
from tritonpy_worker.api.metrics import Metric, MetricFamily, MetricKind

PREFIX = "Failed to process the request for model 'm_0_0', message: "
KEPT: list[MetricFamily] = []


@pytest.fixture(autouse=True)
def numbered(host):
    numbers = count(1)
    query = host.query

    def answer(verb, arguments):
        answered = query(verb, arguments)
        return next(numbers) if answered is None else answered

    host.query = answer
    yield
    KEPT.clear()


def family(kind=MetricFamily.COUNTER):
    """Return a family that exists until the end of the test."""
    KEPT.append(MetricFamily(name="n", description="d", kind=kind))
    return KEPT[-1]


def refusal(function, *arguments, **named):
    with pytest.raises(TritonModelException) as caught:
        function(*arguments, **named)
    return str(caught.value)


@pytest.mark.parametrize(("number", "name"), [(0, "COUNTER"), (1, "GAUGE"), (2, "HISTOGRAM")])
def test_kinds_have_tritons_numbers_and_names(number, name):
    kind = getattr(MetricFamily, name)
    assert kind is MetricKind[name]
    assert kind == number
    assert repr(kind) == f"<MetricKind.{name}: {number}>"


def test_a_family_and_its_metric_are_created_on_the_server(host):
    counter = family()
    metric = counter.Metric(labels={"a": "b"})
    assert isinstance(metric, Metric)
    assert host.queries == [
        ("metric_family", {"name": "n", "description": "d", "kind": "COUNTER"}),
        ("metric", {"family": 1, "labels": {"a": "b"}, "buckets": None}),
    ]


def test_labels_are_optional(host):
    family().Metric()
    assert host.queries[-1] == ("metric", {"family": 1, "labels": {}, "buckets": None})


def test_the_same_labels_are_the_same_metric(host):
    counter = family()
    one, same, other = (
        counter.Metric({"a": "1", "b": "2"}),
        counter.Metric({"b": "2", "a": "1"}),
        counter.Metric({"a": "1"}),
    )
    for metric in (one, same, other):
        metric.increment(1)
    assert [arguments["metric"] for _, arguments in host.notifications] == [2, 2, 3]


def test_values_are_sent(host):
    counter, gauge, histogram = (family(kind) for kind in MetricKind)
    counter.Metric().increment(2)
    counter.Metric().increment(np.float32(0.5))
    gauge.Metric().increment(-5.5)
    gauge.Metric().set(True)
    histogram.Metric(buckets=[1, 2.5]).observe(1.5)
    verbs = [(verb, arguments["value"]) for verb, arguments in host.notifications]
    assert verbs == [
        ("metric_add", 2),
        ("metric_add", 0.5),
        ("metric_add", -5.5),
        ("metric_set", 1),
        ("metric_observe", 1.5),
    ]
    assert all(type(value) is float for _, value in verbs)
    assert host.queries[-1][1]["buckets"] == [1.0, 2.5]


def test_a_value_is_queried(host):
    host.answers["metric_value"] = 3
    value = family().Metric().value()
    assert value == 3
    assert type(value) is float
    assert host.queries[-1] == ("metric_value", {"metric": 2})


def test_counters_cannot_decrease(host):
    metric = family().Metric()
    assert refusal(metric.increment, -2) == (
        f"Failed to increment metric value: {PREFIX}"
        "TRITONSERVER_METRIC_KIND_COUNTER can only be incremented monotonically by non-negative values."
    )
    assert host.notifications == []
    metric.increment(0)
    metric.increment(math.inf)
    assert len(host.notifications) == 2


@pytest.mark.parametrize(
    ("kind", "function", "arguments", "text"),
    [
        (
            "COUNTER",
            "set",
            (1,),
            "Failed to set metric value: {}TRITONSERVER_METRIC_KIND_COUNTER does not support Set",
        ),
        (
            "COUNTER",
            "observe",
            (1,),
            "Failed to observe metric value: {}TRITONSERVER_METRIC_KIND_COUNTER does not support Observe",
        ),
        (
            "GAUGE",
            "observe",
            (1,),
            "Failed to observe metric value: {}TRITONSERVER_METRIC_KIND_GAUGE does not support Observe",
        ),
        (
            "HISTOGRAM",
            "increment",
            (1,),
            "Failed to increment metric value: {}TRITONSERVER_METRIC_KIND_HISTOGRAM does not support Increment",
        ),
        (
            "HISTOGRAM",
            "set",
            (1,),
            "Failed to set metric value: {}TRITONSERVER_METRIC_KIND_HISTOGRAM does not support Set",
        ),
        (
            "HISTOGRAM",
            "value",
            (),
            "Failed to get metric value: {}TRITONSERVER_METRIC_KIND_HISTOGRAM does not support Value",
        ),
    ],
)
def test_operations_of_other_kinds_are_rejected(host, kind, function, arguments, text):
    metric = family(MetricKind[kind]).Metric(buckets=[1.0] if kind == "HISTOGRAM" else None)
    assert refusal(getattr(metric, function), *arguments) == text.format(PREFIX)
    assert host.notifications == []


@pytest.mark.parametrize("function", ["increment", "set", "observe"])
@pytest.mark.parametrize("value", ["1", b"1", None, [1]])
def test_values_are_numbers(function, value):
    metric = family().Metric()
    with pytest.raises(TypeError) as caught:
        getattr(metric, function)(value)
    assert str(caught.value) == (
        f"{function}(): incompatible function arguments. The following argument types are supported:\n"
        f"    1. (self: c_python_backend_utils.Metric, arg0: float) -> None\n\nInvoked with: {metric!r}, {value!r}"
    )


@pytest.mark.parametrize(
    "arguments",
    [(5, "d", MetricKind.GAUGE), ("n", None, MetricKind.GAUGE), ("n", "d", 0), ("n", "d", "GAUGE")],
)
def test_wrong_argument_types_have_tritons_error(host, arguments):
    with pytest.raises(TypeError) as caught:
        MetricFamily(*arguments)
    assert str(caught.value).startswith(
        "__init__(): incompatible constructor arguments. The following argument types are supported:\n    1. "
        "c_python_backend_utils.MetricFamily(name: str, description: str, kind: c_python_backend_utils.MetricKind)"
    )
    assert host.queries == []


def test_errors_of_the_server_are_raised(host):
    host.answers["metric_family"] = TritonModelException("Invalid metric name")
    assert refusal(family) == f"Error when creating MetricFamily: {PREFIX}Invalid metric name"
    host.answers["metric_family"] = 1
    host.answers["metric"] = TritonModelException("Invalid label name")
    assert (
        refusal(family().Metric, {1: "a"})
        == f"Error when creating Metric: {PREFIX}Invalid label name"
    )
    host.answers["metric"] = 2
    host.answers["metric_value"] = TritonModelException("gone")
    assert refusal(family().Metric().value) == f"Failed to get metric value: {PREFIX}gone"


def test_a_rejected_metric_can_be_created_again(host):
    counter = family()
    host.answers["metric"] = TritonModelException("not now")
    refusal(counter.Metric)
    host.answers["metric"] = 9
    counter.Metric().increment(1)
    assert host.notifications == [("metric_add", {"metric": 9, "value": 1.0})]


@pytest.mark.parametrize("labels", [[1], "a", 5, ()])
def test_labels_are_a_dictionary(labels):
    assert (
        refusal(family().Metric, labels) == "Failed to create metric. Labels must be a dictionary."
    )


def test_labels_are_text(host):
    text = f"Error when creating Metric: {PREFIX}attempt to access JSON non-string as string"
    for labels in ({"a": 1}, {"a": None}, {"a": ["b"]}):
        assert refusal(family().Metric, labels) == text
    with pytest.raises(TypeError, match="is not JSON serializable"):
        family().Metric({"a": object()})
    assert all(verb == "metric_family" for verb, _ in host.queries)


def test_keys_of_labels_are_converted_to_strings(host):
    family().Metric({1: "a"})
    assert host.queries[-1][1]["labels"] == {"1": "a"}


def test_buckets_belong_to_histograms():
    assert (
        refusal(family().Metric, {}, [1.0]) == "Failed to create metric. Unexpected buckets found."
    )
    assert (
        refusal(family(MetricKind.GAUGE).Metric, buckets=[])
        == "Failed to create metric. Unexpected buckets found."
    )
    histogram = family(MetricKind.HISTOGRAM)
    assert (
        refusal(histogram.Metric, {"a": "b"})
        == "Failed to create metric. Missing required buckets."
    )
    for buckets in ((1, 2), {1: 2}, "12", 5):
        assert (
            refusal(histogram.Metric, {}, buckets)
            == "Failed to create metric. Buckets must be a list."
        )
    with pytest.raises(RuntimeError, match=r"^Unable to cast Python instance to C"):
        histogram.Metric(buckets=[1, "x"])


def test_metrics_exist_while_their_family_exists(host):
    counter = MetricFamily("n", "d", MetricFamily.COUNTER)
    counter.Metric({"a": "1"}).increment(1)
    counter.Metric({"a": "2"})
    host.notifications.clear()
    gc.collect()
    assert host.notifications == []
    del counter
    gc.collect()
    assert host.notifications == [
        ("metric_drop", {"id": 2}),
        ("metric_drop", {"id": 3}),
        ("metric_family_drop", {"id": 1}),
    ]


def test_a_metric_without_its_family_raises_errors(host):
    counter = MetricFamily("n", "d", MetricFamily.COUNTER)
    metric = counter.Metric()
    del counter
    gc.collect()
    host.notifications.clear()
    gone = (
        "Invalid metric operation as the corresponding 'MetricFamily' has been deleted. The 'MetricFamily' object "
        "should be deleted AFTER its corresponding 'Metric' objects have been deleted."
    )
    assert refusal(metric.increment, 1) == f"Failed to increment metric value: {gone}"
    assert refusal(metric.set, 1) == f"Failed to set metric value: {gone}"
    assert refusal(metric.observe, 1) == f"Failed to observe metric value: {gone}"
    assert refusal(metric.value) == f"Failed to get metric value: {gone}"
    assert host.notifications == []


def test_a_rejected_family_is_not_dropped(host):
    host.answers["metric_family"] = TritonModelException("no")
    refusal(family)
    gc.collect()
    assert host.notifications == []
