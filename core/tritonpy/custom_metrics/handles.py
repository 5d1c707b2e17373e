"""What a model holds of the metrics that it made or joined: handles, each of them one owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tritonpy.custom_metrics.cells import Cell, make_cell
from tritonpy.custom_metrics.kind import MetricKind
from tritonpy.custom_metrics.names import sorted_labels
from tritonpy.custom_metrics.registry import CustomMetrics, Labels, SharedFamily
from tritonpy.errors import Internal


class ModelMetrics:
    """The custom metrics of one loaded version of a model. What it has not dropped by itself goes when it is unloaded."""

    def __init__(self, registry: CustomMetrics) -> None:
        self._registry = registry
        self._families: set[MetricFamily] = set()
        self._closed = False

    def family(self, name: str, description: str, kind: MetricKind) -> MetricFamily:
        """Make the family `name`, or join it where a model made it before: then its description stays as it is.

        Raises InvalidArgument for a name that Prometheus does not allow and for a family of another kind, AlreadyExists for one of the
        server's own metrics.
        """
        with self._registry.lock:
            if self._closed:
                raise Internal(f"Could not create the metric family '{name}': its model was unloaded")
            family = MetricFamily(self._registry, self._families, self._registry.own(name, description, kind))
            self._families.add(family)
            return family

    def close(self) -> None:
        """Drop every family that is left; called when the model is gone."""
        with self._registry.lock:
            self._closed = True
            for family in list(self._families):
                family._release()


class MetricFamily:
    """One owner's hold on a family. Its metrics end with it."""

    def __init__(self, registry: CustomMetrics, siblings: set[MetricFamily], shared: SharedFamily) -> None:
        self.kind = shared.kind
        self._registry = registry
        self._siblings = siblings
        self._shared = shared
        self._metrics: set[Metric] = set()

    def metric(self, labels: Mapping[str, str] | None = None, buckets: Sequence[float] | None = None) -> Metric:
        """Make the metric with these labels, or join it: then its buckets stay as they are.

        `buckets` are the upper bounds of a histogram, strictly ascending, without the one of +Inf; other kinds have none.
        Raises InvalidArgument for bad labels or buckets, Internal after `drop`.
        """
        fresh, names = make_cell(self.kind, buckets), sorted_labels(labels or {}, self.kind)
        with self._registry.lock:
            if self not in self._siblings:
                raise Internal("Could not create metric. MetricFamily has been invalidated.")
            metric = Metric(self, names, self._shared.cells.setdefault(names, fresh))
            self._metrics.add(metric)
            return metric

    def drop(self) -> None:
        """Give the family and the metrics made through it up; a second time is fine."""
        with self._registry.lock:
            if self in self._siblings:
                self._release()

    def _release(self) -> None:
        # The registry's lock is held by the caller.
        self._siblings.remove(self)
        for metric in list(self._metrics):
            metric._release()
        self._registry.disown(self._shared)


class Metric:
    """One owner's hold on a metric. Raises Internal where it is used after it or its family was dropped."""

    def __init__(self, family: MetricFamily, labels: Labels, cell: Cell) -> None:
        self._family = family
        self._lock = family._registry.lock
        self._labels = labels
        self._cell: Cell | None = cell
        cell.owners += 1

    def increment(self, value: float) -> None:
        """Add `value`, never a negative one to a counter: InvalidArgument. Raises Unsupported for histograms."""
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
        """Return what all owners together made of it. Raises Unsupported for histograms."""
        with self._lock:
            return self._live("get").value()

    def drop(self) -> None:
        """Give the metric up; with its last owner it disappears. A second time is fine."""
        with self._lock:
            if self._cell is not None:
                self._release()

    def _release(self) -> None:
        # The registry's lock is held by the caller.
        cell, self._cell = self._live("drop"), None
        self._family._metrics.remove(self)
        cell.owners -= 1
        if cell.owners == 0:
            del self._family._shared.cells[self._labels]

    def _live(self, verb: str) -> Cell:
        if self._cell is None:
            raise Internal(f"Could not {verb} metric value. Metric has been invalidated.")
        return self._cell
