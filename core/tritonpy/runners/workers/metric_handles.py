"""The metrics that one worker, or one frontend process, made: by the numbers that it knows them by."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Literal, TypeVar

import msgspec

from tritonpy.custom_metrics import Metric, MetricFamily, MetricKind, ModelMetrics
from tritonpy.ipc import ProtocolError

_Handle = TypeVar("_Handle", Metric, MetricFamily)


class FamilySaid(msgspec.Struct):
    """A family to make or to join."""

    name: str
    description: str
    kind: Literal["COUNTER", "GAUGE", "HISTOGRAM"]


class MetricSaid(msgspec.Struct):
    """A metric to make or to join; `family` is a number of a family."""

    family: int
    labels: dict[str, Any] | None = None
    buckets: list[float] | None = None


class ValueSaid(msgspec.Struct):
    """What to do a metric with; `metric` is its number."""

    metric: int
    value: float


class MetricRead(msgspec.Struct):
    """Whose value is asked for."""

    metric: int


class Dropped(msgspec.Struct):
    """The number of what is not used any more."""

    id: int


class MetricHandles:
    """Raises what the metrics themselves raise, and ProtocolError for a number that the worker was not given, or gave back."""

    def __init__(self, metrics: ModelMetrics) -> None:
        self._model = metrics
        self._numbers = count(1)
        self._families: dict[int, MetricFamily] = {}
        self._metrics: dict[int, Metric] = {}

    def verbs(self) -> dict[str, tuple[type[Any], Callable[[Any], Any]]]:
        """Return what may be asked and told of them: by name what its arguments are, and what acts on them."""
        return {
            "metric_family": (FamilySaid, self.make_family),
            "metric": (MetricSaid, self.make),
            "metric_value": (MetricRead, self.value),
            "metric_add": (ValueSaid, self.add),
            "metric_set": (ValueSaid, self.set),
            "metric_observe": (ValueSaid, self.observe),
            "metric_drop": (Dropped, self.drop),
            "metric_family_drop": (Dropped, self.drop_family),
        }

    def make_family(self, said: FamilySaid) -> int:
        """Make or join a family; return its number."""
        return self._keep(self._families, self._model.family(said.name, said.description, MetricKind[said.kind]))

    def make(self, said: MetricSaid) -> int:
        """Make or join a metric; return its number."""
        return self._keep(self._metrics, _of(self._families, said.family).metric(said.labels, said.buckets))

    def value(self, said: MetricRead) -> float:
        """Return a metric's value."""
        return _of(self._metrics, said.metric).value()

    def add(self, said: ValueSaid) -> None:
        """Add to a metric."""
        _of(self._metrics, said.metric).increment(said.value)

    def set(self, said: ValueSaid) -> None:
        """Replace a metric's value."""
        _of(self._metrics, said.metric).set(said.value)

    def observe(self, said: ValueSaid) -> None:
        """Show a histogram one more value."""
        _of(self._metrics, said.metric).observe(said.value)

    def drop(self, said: Dropped) -> None:
        """Give a metric up."""
        _of(self._metrics, said.id).drop()
        del self._metrics[said.id]

    def drop_family(self, said: Dropped) -> None:
        """Give a family up; its metrics keep their numbers until they are dropped themselves."""
        _of(self._families, said.id).drop()
        del self._families[said.id]

    def close(self) -> None:
        """Give everything up: the worker is gone."""
        for family in self._families.values():
            family.drop()
        self._families.clear()
        self._metrics.clear()

    def _keep(self, handles: dict[int, _Handle], handle: _Handle) -> int:
        number = next(self._numbers)
        handles[number] = handle
        return number


def _of(handles: dict[int, _Handle], number: int) -> _Handle:
    try:
        return handles[number]
    except KeyError:
        raise ProtocolError(f"there is no metric or family with the number {number}") from None
