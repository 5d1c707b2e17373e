"""Metrics of a backend in a worker process; the server holds their values.

Each metric has a local copy, which only this process changes. The copy refuses what the server
would refuse, so that no call has to wait for the server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tritonpy.metrics import CustomMetrics, Metric, MetricFamily, MetricKind, ModelMetrics


@dataclass(frozen=True, slots=True)
class ServerLink:
    """RPC to the server: `call` waits for the value, `notify` does not."""

    call: Callable[..., Any]
    notify: Callable[..., None]


class RemoteMetrics(ModelMetrics):
    """The metrics of a model; the server drops them when the worker ends."""

    def __init__(self, link: ServerLink) -> None:
        super().__init__(CustomMetrics())
        self._link = link

    def family(self, name: str, description: str, kind: MetricKind) -> MetricFamily:
        copy = super().family(name, description, kind)
        try:
            number = self._link.call(
                "metric_family", name=name, description=description, kind=kind.name
            )
        except BaseException:
            copy.drop()
            raise
        return _RemoteFamily(self._link, number, copy)


class _RemoteFamily(MetricFamily):
    def __init__(self, link: ServerLink, number: int, copy: MetricFamily) -> None:
        self.kind = copy.kind
        self._link = link
        self._number = number
        self._copy = copy

    def metric(
        self, labels: Mapping[str, str] | None = None, buckets: Sequence[float] | None = None
    ) -> Metric:
        copy = self._copy.metric(labels, buckets)
        number = self._link.call(
            "metric",
            family=self._number,
            labels=None if labels is None else dict(labels),
            buckets=None if buckets is None else [float(bound) for bound in buckets],
        )
        return _RemoteMetric(self._link, number, copy)

    def drop(self) -> None:
        if self._number:
            self._copy.drop()
            self._link.notify("metric_family_drop", id=self._number)
            self._number = 0


class _RemoteMetric(Metric):
    def __init__(self, link: ServerLink, number: int, copy: Metric) -> None:
        self._link = link
        self._number = number
        self._copy = copy

    def increment(self, value: float) -> None:
        self._copy.increment(value)
        self._link.notify("metric_add", metric=self._number, value=float(value))

    def set(self, value: float) -> None:
        self._copy.set(value)
        self._link.notify("metric_set", metric=self._number, value=float(value))

    def observe(self, value: float) -> None:
        self._copy.observe(value)
        self._link.notify("metric_observe", metric=self._number, value=float(value))

    def value(self) -> float:
        self._copy.value()  # raises if there is no value
        return float(self._link.call("metric_value", metric=self._number))

    def drop(self) -> None:
        if self._number:
            self._copy.drop()
            self._link.notify("metric_drop", id=self._number)
            self._number = 0
