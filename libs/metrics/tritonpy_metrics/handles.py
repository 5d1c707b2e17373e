"""Handles of metrics, through which models own and change them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tritonpy_metrics.registry import (
    Cell,
    CustomMetrics,
    Labels,
    MetricKind,
    SharedFamily,
    make_cell,
    sorted_labels,
)
from tritonpy_types.errors import Internal


class ModelMetrics:
    """The custom metrics of one loaded version of a model.

    Metrics that the model has not dropped are dropped when it is unloaded.
    """

    def __init__(self, registry: CustomMetrics) -> None:
        self._registry = registry
        self._families: set[MetricFamily] = set()
        self._closed = False

    def family(self, name: str, description: str, kind: MetricKind) -> MetricFamily:
        """Create the family `name`, or join an existing one, whose description then stays the same.

        Raises InvalidArgument for a name that Prometheus does not allow and for a family of another
        kind. Raises AlreadyExists for one of the server's own metrics.
        """
        with self._registry.lock:
            if self._closed:
                raise Internal(
                    f"Could not create the metric family '{name}': its model was unloaded"
                )
            family = MetricFamily(
                self._registry, self._families, self._registry.own(name, description, kind)
            )
            self._families.add(family)
            return family

    def close(self) -> None:
        """Drop all remaining families; called when the model is unloaded."""
        with self._registry.lock:
            self._closed = True
            for family in list(self._families):
                family._release()


class MetricFamily:
    """One owner's handle of a metric family; dropping it drops the metrics created through it."""

    def __init__(
        self, registry: CustomMetrics, siblings: set[MetricFamily], shared: SharedFamily
    ) -> None:
        self.kind = shared.kind
        self._registry = registry
        self._siblings = siblings
        self._shared = shared
        self._metrics: set[Metric] = set()

    def metric(
        self, labels: Mapping[str, str] | None = None, buckets: Sequence[float] | None = None
    ) -> Metric:
        """Create the metric with these labels, or join an existing one.

        An existing metric keeps its buckets. `buckets` are the upper bounds of a histogram,
        strictly ascending, without +Inf; other kinds have none. Raises InvalidArgument for bad
        labels or buckets, Internal after `drop`.
        """
        fresh, names = make_cell(self.kind, buckets), sorted_labels(labels or {}, self.kind)
        with self._registry.lock:
            if self not in self._siblings:
                raise Internal("Could not create metric. MetricFamily has been invalidated.")
            metric = Metric(self, names, self._shared.cells.setdefault(names, fresh))
            self._metrics.add(metric)
            return metric

    def drop(self) -> None:
        """Drop the family and the metrics created through it; a second call does nothing."""
        with self._registry.lock:
            if self in self._siblings:
                self._release()

    def _release(self) -> None:
        # The caller holds the registry's lock.
        self._siblings.remove(self)
        for metric in list(self._metrics):
            metric._release()
        self._registry.disown(self._shared)


class Metric:
    """One owner's handle of a metric.

    Raises Internal if it is used after it or its family was dropped.
    """

    def __init__(self, family: MetricFamily, labels: Labels, cell: Cell) -> None:
        self._family = family
        self._lock = family._registry.lock
        self._labels = labels
        self._cell: Cell | None = cell
        cell.owners += 1

    def increment(self, value: float) -> None:
        """Add `value`.

        Raises Unsupported for histograms, and InvalidArgument for a counter and a negative value.
        """
        with self._lock:
            self._live("increment").increment(float(value))

    def set(self, value: float) -> None:
        """Replace the value. Raises Unsupported for counters and histograms."""
        with self._lock:
            self._live("set").set(float(value))

    def observe(self, value: float) -> None:
        """Count `value` in its bucket. Raises Unsupported for counters and gauges."""
        with self._lock:
            self._live("set").observe(float(value))

    def value(self) -> float:
        """Return the value, to which all owners contribute. Raises Unsupported for histograms."""
        with self._lock:
            return self._live("get").value()

    def drop(self) -> None:
        """Drop the metric; it is removed with its last owner. A second call does nothing."""
        with self._lock:
            if self._cell is not None:
                self._release()

    def _release(self) -> None:
        # The caller holds the registry's lock.
        cell, self._cell = self._live("drop"), None
        self._family._metrics.remove(self)
        cell.owners -= 1
        if cell.owners == 0:
            del self._family._shared.cells[self._labels]

    def _live(self, verb: str) -> Cell:
        if self._cell is None:
            raise Internal(f"Could not {verb} metric value. Metric has been invalidated.")
        return self._cell
