from __future__ import annotations

from typing import Any

import pytest

from tritonpy_engine_rpc.messages import convert
from tritonpy_engine_rpc.metric_handles import (
    DropMessage,
    MetricFamilyMessage,
    MetricHandles,
    MetricMessage,
    MetricReadMessage,
    MetricValueMessage,
)
from tritonpy_engine_rpc.remote_metrics import RemoteMetrics, ServerLink
from tritonpy_metrics import CustomMetrics, MetricKind, ModelMetrics
from tritonpy_types.errors import (
    AlreadyExists,
    Internal,
    InvalidArgument,
    TritonError,
    Unavailable,
    Unsupported,
)


class Server:
    """The real registry behind the queries, without a socket in between."""

    def __init__(self) -> None:
        self.registry = CustomMetrics()
        handles = MetricHandles(ModelMetrics(self.registry))
        self.refusal: TritonError | None = None
        self.payload: list[str] = []
        self._verbs: dict[str, tuple[Any, Any]] = {
            "metric_family": (MetricFamilyMessage, handles.make_family),
            "metric": (MetricMessage, handles.make),
            "metric_value": (MetricReadMessage, handles.value),
            "metric_add": (MetricValueMessage, handles.add),
            "metric_set": (MetricValueMessage, handles.set),
            "metric_observe": (MetricValueMessage, handles.observe),
            "metric_drop": (DropMessage, handles.drop),
            "metric_family_drop": (DropMessage, handles.drop_family),
        }

    def handle(self, verb: str, **arguments: Any) -> Any:
        self.payload.append(verb)
        if self.refusal is not None:
            raise self.refusal
        kind, act = self._verbs[verb]
        return act(convert(arguments, kind))


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def metrics(server: Server) -> RemoteMetrics:
    return RemoteMetrics(ServerLink(server.handle, server.handle))


def test_metrics_and_counts_are_those_of_the_server(server: Server, metrics: RemoteMetrics) -> None:
    counter = metrics.family("made", "Items made", MetricKind.COUNTER).metric({"line": "1"})
    counter.increment(2)
    gauge = metrics.family("heat", "", MetricKind.GAUGE).metric()
    gauge.set(5)
    gauge.increment(-1.5)
    metrics.family("sizes", "", MetricKind.HISTOGRAM).metric({}, [1, 2]).observe(1.5)
    made, heat, sizes = server.registry.snapshot()
    assert (made.description, made.metrics[0].labels, made.metrics[0].value) == (
        "Items made",
        {"line": "1"},
        2.0,
    )
    assert (heat.metrics[0].value, gauge.value()) == (3.5, 3.5)
    assert sizes.metrics[0].histogram is not None
    assert sizes.metrics[0].histogram.counts == [0, 1]


def test_a_value_combines_all_workers(server: Server, metrics: RemoteMetrics) -> None:
    counters = [
        each.family("made", "", MetricKind.COUNTER).metric()
        for each in (metrics, RemoteMetrics(ServerLink(server.handle, server.handle)))
    ]
    for counter in counters:
        counter.increment(2)
    assert [counter.value() for counter in counters] == [4.0, 4.0]


def test_invalid_use_is_refused_locally_with_the_same_error(
    server: Server, metrics: RemoteMetrics
) -> None:
    counter = metrics.family("made", "", MetricKind.COUNTER).metric()
    histogram = metrics.family("sizes", "", MetricKind.HISTOGRAM).metric({}, [1, 2])
    before = list(server.payload)
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
    assert server.payload == before


def test_a_dropped_metric_is_gone_and_may_be_dropped_again(
    server: Server, metrics: RemoteMetrics
) -> None:
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


def test_a_family_that_the_server_refuses_is_not_kept(
    server: Server, metrics: RemoteMetrics
) -> None:
    server.refusal = Unavailable("not now")
    with pytest.raises(Unavailable, match="not now"):
        metrics.family("made", "", MetricKind.COUNTER)
    server.refusal = None
    metrics.family("made", "", MetricKind.GAUGE).metric().set(1)
    assert server.registry.snapshot()[0].kind is MetricKind.GAUGE
