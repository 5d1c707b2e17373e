"""Custom metrics of models as prometheus-client families."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector

from tritonpy import Engine
from tritonpy.metrics import FamilySnapshot
from tritonpy_metrics_prometheus.distributions import add_histogram


class CustomCollector(Collector):
    """Yields the custom metric families of the engine's models."""

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
            add_histogram(metric, each.labels, each.histogram)
    return metric
