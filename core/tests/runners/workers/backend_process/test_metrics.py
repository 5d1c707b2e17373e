from __future__ import annotations

from typing import Any

import pytest

from tritonpy.custom_metrics import CustomMetrics, MetricKind, ModelMetrics
from tritonpy.errors import AlreadyExists, Internal, InvalidArgument, TritonError, Unavailable, Unsupported
from tritonpy.runners.workers.backend_process.metrics import Link, RemoteMetrics
from tritonpy.runners.workers.metric_handles import (
    Dropped,
    FamilySaid,
    MetricHandles,
    MetricRead,
    MetricSaid,
    ValueSaid,
)
from tritonpy.runners.workers.said import convert


class Server:
    """The real registry behind the verbs, without a socket between."""

    def __init__(self) -> None:
        self.registry = CustomMetrics()
        handles = MetricHandles(ModelMetrics(self.registry))
        self.refusal: TritonError | None = None
        self.said: list[str] = []
        self._verbs: dict[str, tuple[Any, Any]] = {
            "metric_family": (FamilySaid, handles.make_family),
            "metric": (MetricSaid, handles.make),
            "metric_value": (MetricRead, handles.value),
            "metric_add": (ValueSaid, handles.add),
            "metric_set": (ValueSaid, handles.set),
            "metric_observe": (ValueSaid, handles.observe),
            "metric_drop": (Dropped, handles.drop),
            "metric_family_drop": (Dropped, handles.drop_family),
        }

    def hear(self, verb: str, **arguments: Any) -> Any:
        self.said.append(verb)
        if self.refusal is not None:
            raise self.refusal
        kind, act = self._verbs[verb]
        return act(convert(arguments, kind))


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def metrics(server: Server) -> RemoteMetrics:
    return RemoteMetrics(Link(server.hear, server.hear))


def test_what_is_made_and_counted_here_is_the_servers(server: Server, metrics: RemoteMetrics) -> None:
    counter = metrics.family("made", "What was made", MetricKind.COUNTER).metric({"line": "1"})
    counter.increment(2)
    gauge = metrics.family("heat", "", MetricKind.GAUGE).metric()
    gauge.set(5)
    gauge.increment(-1.5)
    metrics.family("sizes", "", MetricKind.HISTOGRAM).metric({}, [1, 2]).observe(1.5)
    made, heat, sizes = server.registry.snapshot()
    assert (made.description, made.metrics[0].labels, made.metrics[0].value) == ("What was made", {"line": "1"}, 2.0)
    assert (heat.metrics[0].value, gauge.value()) == (3.5, 3.5)
    assert sizes.metrics[0].histogram is not None
    assert sizes.metrics[0].histogram.counts == [0, 1]


def test_a_value_is_what_all_workers_made_of_it(server: Server, metrics: RemoteMetrics) -> None:
    counters = [
        each.family("made", "", MetricKind.COUNTER).metric()
        for each in (metrics, RemoteMetrics(Link(server.hear, server.hear)))
    ]
    for counter in counters:
        counter.increment(2)
    assert [counter.value() for counter in counters] == [4.0, 4.0]


def test_what_is_not_allowed_is_refused_here_in_the_same_words(server: Server, metrics: RemoteMetrics) -> None:
    counter = metrics.family("made", "", MetricKind.COUNTER).metric()
    histogram = metrics.family("sizes", "", MetricKind.HISTOGRAM).metric({}, [1, 2])
    before = list(server.said)
    for error, act in (
        (InvalidArgument, lambda: counter.increment(-1)),
        (Unsupported, lambda: counter.set(1)),
        (Unsupported, lambda: counter.observe(1)),
        (Unsupported, histogram.value),
        (InvalidArgument, lambda: metrics.family("no name", "", MetricKind.GAUGE)),
        (AlreadyExists, lambda: metrics.family("nv_inference_count", "", MetricKind.COUNTER)),
        (InvalidArgument, lambda: metrics.family("made", "", MetricKind.GAUGE)),
    ):
        with pytest.raises(error):
            act()
    assert server.said == before


def test_what_was_dropped_is_gone_and_may_be_dropped_again(server: Server, metrics: RemoteMetrics) -> None:
    family = metrics.family("made", "", MetricKind.COUNTER)
    one, other = family.metric({"n": "1"}), family.metric({"n": "2"})
    one.drop()
    one.drop()
    with pytest.raises(Internal):
        one.increment(1)
    assert [each.labels for each in server.registry.snapshot()[0].metrics] == [{"n": "2"}]
    family.drop()
    family.drop()
    with pytest.raises(Internal):
        family.metric()
    with pytest.raises(Internal):
        other.increment(1)
    assert server.registry.snapshot() == []


def test_a_family_that_the_server_refuses_is_not_kept(server: Server, metrics: RemoteMetrics) -> None:
    server.refusal = Unavailable("not now")
    with pytest.raises(Unavailable, match="not now"):
        metrics.family("made", "", MetricKind.COUNTER)
    server.refusal = None
    metrics.family("made", "", MetricKind.GAUGE).metric().set(1)
    assert server.registry.snapshot()[0].kind is MetricKind.GAUGE
