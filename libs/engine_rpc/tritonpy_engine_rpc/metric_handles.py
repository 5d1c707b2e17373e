"""Handles for the metrics that a worker or frontend process created."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Literal, TypeVar

import msgspec

from tritonpy.metrics import Metric, MetricFamily, MetricKind, ModelMetrics
from tritonpy_ipc import ProtocolError

_Handle = TypeVar("_Handle", Metric, MetricFamily)


class MetricFamilyMessage(msgspec.Struct):
    """A metric family to create or to join."""

    name: str
    description: str
    kind: Literal["COUNTER", "GAUGE", "HISTOGRAM"]


class MetricMessage(msgspec.Struct):
    """A metric to create or to join; `family` is the number of its family."""

    family: int
    labels: dict[str, Any] | None = None
    buckets: list[float] | None = None


class MetricValueMessage(msgspec.Struct):
    """A new value or increment for the metric with number `metric`."""

    metric: int
    value: float


class MetricReadMessage(msgspec.Struct):
    """The metric whose value is read."""

    metric: int


class DropMessage(msgspec.Struct):
    """The number of a metric or family to drop."""

    id: int


class MetricHandles:
    """Metrics and families by the numbers that the other process uses.

    Methods raise the errors of the metrics, and `ProtocolError` for an unknown number.
    """

    def __init__(self, metrics: ModelMetrics) -> None:
        self._model = metrics
        self._numbers = count(1)
        self._families: dict[int, MetricFamily] = {}
        self._metrics: dict[int, Metric] = {}

    def verbs(self) -> dict[str, tuple[type[Any], Callable[[Any], Any]]]:
        """Return the message type and the handler of each query about metrics."""
        return {
            "metric_family": (MetricFamilyMessage, self.make_family),
            "metric": (MetricMessage, self.make),
            "metric_value": (MetricReadMessage, self.value),
            "metric_add": (MetricValueMessage, self.add),
            "metric_set": (MetricValueMessage, self.set),
            "metric_observe": (MetricValueMessage, self.observe),
            "metric_drop": (DropMessage, self.drop),
            "metric_family_drop": (DropMessage, self.drop_family),
        }

    def make_family(self, message: MetricFamilyMessage) -> int:
        """Create or join a family and return its number."""
        return self._add(
            self._families,
            self._model.family(message.name, message.description, MetricKind[message.kind]),
        )

    def make(self, message: MetricMessage) -> int:
        """Create or join a metric and return its number."""
        return self._add(
            self._metrics,
            _find(self._families, message.family).metric(message.labels, message.buckets),
        )

    def value(self, message: MetricReadMessage) -> float:
        """Return the value of a metric."""
        return _find(self._metrics, message.metric).value()

    def add(self, message: MetricValueMessage) -> None:
        """Add a value to a metric."""
        _find(self._metrics, message.metric).increment(message.value)

    def set(self, message: MetricValueMessage) -> None:
        """Set the value of a metric."""
        _find(self._metrics, message.metric).set(message.value)

    def observe(self, message: MetricValueMessage) -> None:
        """Add an observation to a histogram."""
        _find(self._metrics, message.metric).observe(message.value)

    def drop(self, message: DropMessage) -> None:
        """Drop a metric."""
        _find(self._metrics, message.id).drop()
        del self._metrics[message.id]

    def drop_family(self, message: DropMessage) -> None:
        """Drop a family; its metrics keep their numbers until they are dropped themselves."""
        _find(self._families, message.id).drop()
        del self._families[message.id]

    def close(self) -> None:
        """Drop everything: the process is gone."""
        for family in self._families.values():
            family.drop()
        self._families.clear()
        self._metrics.clear()

    def _add(self, handles: dict[int, _Handle], handle: _Handle) -> int:
        number = next(self._numbers)
        handles[number] = handle
        return number


def _find(handles: dict[int, _Handle], number: int) -> _Handle:
    try:
        return handles[number]
    except KeyError:
        raise ProtocolError(f"there is no metric or family with the number {number}") from None
