"""The metrics that models make themselves, as prometheus-client families."""

from __future__ import annotations

import math
from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector

from tritonpy import Engine, FamilySnapshot, HistogramSnapshot
from tritonpy_metrics_prometheus.exposition import number


class CustomCollector(Collector):
    """Yields the families of the engine's models, under the names that the models gave them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        """Yield each family that has a metric."""
        for family in self._engine.custom_metrics():
            yield _metric(family)


def _metric(family: FamilySnapshot) -> Metric:
    metric = Metric(family.name, family.description, family.kind.value)
    for each in family.metrics:
        if each.histogram is None:
            metric.add_sample(family.name, each.labels, each.value)
        else:
            _add_histogram(metric, each.labels, each.histogram)
    return metric


def _add_histogram(metric: Metric, labels: dict[str, str], histogram: HistogramSnapshot) -> None:
    metric.add_sample(f"{metric.name}_count", labels, histogram.count)
    metric.add_sample(f"{metric.name}_sum", labels, histogram.sum)
    bounds, counts = [*histogram.bounds, math.inf], [*histogram.counts, histogram.count]
    for bound, count in zip(bounds, counts, strict=True):
        metric.add_sample(f"{metric.name}_bucket", {**labels, "le": number(bound)}, count)
