"""The engine's statistics as prometheus-client families, read when scraped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import Metric
from prometheus_client.registry import Collector

from tritonpy import Engine, FailureReason, ModelGauges, ModelStatistics
from tritonpy_metrics_prometheus.model_families import (
    COUNTS,
    FAILURE_HELP,
    FAILURE_NAME,
    GAUGES,
    LATENCIES,
    SUCCESS,
    ModelFamily,
)


@dataclass(frozen=True, slots=True)
class _Model:
    labels: Mapping[str, str]
    statistics: ModelStatistics
    gauges: ModelGauges


class EngineCollector(Collector):
    """Yields the families of every loaded model version.

    With `counter_latencies` off the latency families are left out and the counters stay at zero: Triton increments them
    through the same switch, and dashboards may rely on either.
    """

    def __init__(self, engine: Engine, counter_latencies: bool = True) -> None:
        self._engine = engine
        self._counting = counter_latencies
        self._counters = (*COUNTS, *(LATENCIES if counter_latencies else ()))

    def collect(self) -> Iterator[Metric]:
        """Yield the families in Triton's order; a model that is unloaded meanwhile is left out of all of them."""
        models = self._models()
        if not models:
            return
        yield self._family(SUCCESS, models)
        yield self._failures(models)
        for family in (*self._counters, *GAUGES):
            yield self._family(family, models)

    def _models(self) -> list[_Model]:
        gauges = self._engine.gauges()
        models = []
        for statistics in self._engine.statistics():
            own = gauges.get((statistics.name, statistics.version))
            if own is not None:
                labels = {"model": statistics.name, "version": statistics.version}
                labels.update((f"_{key}", value) for key, value in own.tags.items())
                models.append(_Model(labels, statistics, own))
        return models

    def _family(self, family: ModelFamily, models: list[_Model]) -> Metric:
        metric = Metric(family.name, family.help, family.kind)
        moves = self._counting or family.kind != "counter"
        for model in models:
            value = family.read(model.statistics, model.gauges) if moves else 0
            metric.add_sample(family.name, dict(model.labels), value)
        return metric

    def _failures(self, models: list[_Model]) -> Metric:
        metric = Metric(FAILURE_NAME, FAILURE_HELP, "counter")
        for model in models:
            for reason in FailureReason:
                count = model.gauges.failures.get(reason.value, 0) if self._counting else 0
                metric.add_sample(FAILURE_NAME, {**model.labels, "reason": reason.value}, count)
        return metric
