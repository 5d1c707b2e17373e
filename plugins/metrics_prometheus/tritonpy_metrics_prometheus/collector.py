"""The engine's statistics as prometheus-client families, read when scraped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import Metric
from prometheus_client.registry import Collector

from tritonpy import Engine, FailureReason, ModelGauges, ModelStatistics, Unavailable
from tritonpy_metrics_prometheus.distributions import (
    FIRST_RESPONSE,
    FIRST_RESPONSE_HELP,
    SUMMARIES,
    add_histogram,
    add_summary,
    summary_name,
)
from tritonpy_metrics_prometheus.label_sets import LabelSet, label_sets, model_labels
from tritonpy_metrics_prometheus.model_families import (
    CACHE,
    COUNTS,
    FAILURE_HELP,
    FAILURE_NAME,
    GAUGES,
    LATENCIES,
    MEMORY_HELP,
    MEMORY_NAME,
    SUCCESS,
    ModelFamily,
)


@dataclass(frozen=True, slots=True)
class _Model:
    labels: Mapping[str, str]
    statistics: ModelStatistics
    gauges: ModelGauges
    counts: Sequence[LabelSet]


class EngineCollector(Collector):
    """Yields the families of every loaded model version.

    With `counter_latencies` off the latency families are left out and the counters stay at zero: Triton increments them
    through the same switch, and dashboards may rely on either. `uuids` are those of the visible GPUs, by number.
    """

    def __init__(self, engine: Engine, counter_latencies: bool = True, uuids: Sequence[str] = ()) -> None:
        self._engine = engine
        self._uuids = uuids
        self._counting = counter_latencies
        self._counters = (*COUNTS, *(LATENCIES if counter_latencies else ()))

    def collect(self) -> Iterator[Metric]:
        """Yield the families in Triton's order; a model that is unloaded meanwhile is left out of all of them."""
        models = self._models()
        if not models:
            return
        yield self._counter(SUCCESS, models)
        yield self._failures(models)
        for family in self._counters:
            yield self._counter(family, models)
        cached = [model for model in models if model.gauges.cached]
        if cached and self._counting:
            for family in CACHE:
                yield self._counter(family, cached)
        for family in GAUGES:
            yield _gauge(family, models)
        yield from _memory(models)
        yield from self._distributions(models)

    def _models(self) -> list[_Model]:
        gauges = self._engine.gauges()
        try:
            found = self._engine.statistics()
        except Unavailable:  # the server is stopping, or could not read its repository: its own metrics are served
            return []
        models = []
        for statistics in found:
            own = gauges.get((statistics.qualified_name, statistics.version))
            if own is not None:
                counts = label_sets(statistics, own, self._uuids)
                models.append(_Model(model_labels(statistics, own), statistics, own, counts))
        return models

    def _counter(self, family: ModelFamily, models: list[_Model]) -> Metric:
        metric = Metric(family.name, family.help, family.kind)
        for model in models:
            for counted in model.counts:
                value = family.read(counted.statistics, model.gauges) if self._counting else 0
                metric.add_sample(family.name, dict(counted.labels), value)
        return metric

    @staticmethod
    def _distributions(models: list[_Model]) -> Iterator[Metric]:
        first = Metric(FIRST_RESPONSE, FIRST_RESPONSE_HELP, "histogram")
        summaries = {part: Metric(summary_name(part), text, "summary") for part, text in SUMMARIES.items()}
        for model in models:
            if model.gauges.first_response is not None:
                add_histogram(first, model.labels, model.gauges.first_response)
            for part, summary in model.gauges.summaries.items():
                add_summary(summaries[part], model.labels, summary)
        return (metric for metric in (first, *summaries.values()) if metric.samples)

    def _failures(self, models: list[_Model]) -> Metric:
        metric = Metric(FAILURE_NAME, FAILURE_HELP, "counter")
        for model in models:
            for counted in model.counts:
                for reason in FailureReason:
                    count = counted.failures.get(reason.value, 0) if self._counting else 0
                    metric.add_sample(FAILURE_NAME, {**counted.labels, "reason": reason.value}, count)
        return metric


def _memory(models: list[_Model]) -> Iterator[Metric]:
    metric = Metric(MEMORY_NAME, MEMORY_HELP, "gauge")
    for model in models:
        for usage in model.statistics.memory_usage:
            labels = {**model.labels, "kind": usage.type, "device": str(usage.id)}
            metric.add_sample(MEMORY_NAME, labels, usage.byte_size)
    if metric.samples:
        yield metric


def _gauge(family: ModelFamily, models: list[_Model]) -> Metric:
    metric = Metric(family.name, family.help, family.kind)
    for model in models:
        metric.add_sample(family.name, dict(model.labels), family.read(model.statistics, model.gauges))
    return metric
