"""The engine's statistics as prometheus-client families, read at scrape time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from prometheus_client import Metric
from prometheus_client.registry import Collector

from tritonpy import Engine, Unavailable
from tritonpy.metrics import FailureReason, ModelGauges, ModelStatistics
from tritonpy_metrics_prometheus.distributions import (
    FIRST_RESPONSE,
    FIRST_RESPONSE_HELP,
    SUMMARIES,
    add_histogram,
    add_summary,
    summary_name,
)
from tritonpy_metrics_prometheus.exposition import TextMetric, labels_text, number
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

REASONS = tuple(reason.value for reason in FailureReason)


@dataclass(frozen=True, slots=True)
class _Model:
    labels: Mapping[str, str]
    text: str
    statistics: ModelStatistics
    gauges: ModelGauges
    counts: Sequence[LabelSet]


class EngineCollector(Collector):
    """Yields the families of every loaded model version.

    Without `counter_latencies` the latency families are omitted and the counters stay at 0, as in
    Triton. `uuids` are those of the visible GPUs, by number.
    """

    def __init__(
        self, engine: Engine, counter_latencies: bool = True, uuids: Sequence[str] = ()
    ) -> None:
        self._engine = engine
        self._uuids = uuids
        self._counting = counter_latencies
        self._counters = (*COUNTS, *(LATENCIES if counter_latencies else ()))

    def collect(self) -> Iterator[Metric]:
        """Yield the families in Triton's order. A model unloaded during the scrape is omitted."""
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
        # While stopping or without a readable repository, only the server's own metrics are served.
        except Unavailable:
            return []
        models = []
        for statistics in found:
            own = gauges.get((statistics.qualified_name, statistics.version))
            if own is not None:
                labels = model_labels(statistics, own)
                text = labels_text(tuple(labels.items()))
                models.append(
                    _Model(
                        labels,
                        text,
                        statistics,
                        own,
                        label_sets(labels, statistics, own, self._uuids),
                    )
                )
        return models

    def _counter(self, family: ModelFamily, models: list[_Model]) -> Metric:
        name, read = family.name, family.read if self._counting else _zero
        lines = [
            f"{name}{counted.text} {number(read(counted.statistics, model.gauges))}\n"
            for model in models
            for counted in model.counts
        ]
        return TextMetric(name, family.help, family.kind, lines)

    @staticmethod
    def _distributions(models: list[_Model]) -> Iterator[Metric]:
        first = Metric(FIRST_RESPONSE, FIRST_RESPONSE_HELP, "histogram")
        summaries = {
            part: Metric(summary_name(part), text, "summary") for part, text in SUMMARIES.items()
        }
        for model in models:
            if model.gauges.first_response is not None:
                add_histogram(first, model.labels, model.gauges.first_response)
            for part, summary in model.gauges.summaries.items():
                add_summary(summaries[part], model.labels, summary)
        return (metric for metric in (first, *summaries.values()) if metric.samples)

    def _failures(self, models: list[_Model]) -> Metric:
        lines = [
            f"{FAILURE_NAME}{text} {counted.failures.get(reason, 0) if self._counting else 0}\n"
            for model in models
            for counted in model.counts
            for reason, text in zip(
                REASONS, _reasons_text(tuple(counted.labels.items())), strict=True
            )
        ]
        return TextMetric(FAILURE_NAME, FAILURE_HELP, "counter", lines)


@lru_cache(maxsize=1 << 14)
def _reasons_text(labels: tuple[tuple[str, str], ...]) -> list[str]:
    return [labels_text((*labels, ("reason", reason))) for reason in REASONS]


def _zero(_statistics: ModelStatistics, _gauges: ModelGauges) -> int:
    return 0


def _memory(models: list[_Model]) -> Iterator[Metric]:
    lines = []
    for model in models:
        for usage in model.statistics.memory_usage:
            text = labels_text(
                (*model.labels.items(), ("kind", usage.type), ("device", str(usage.id)))
            )
            lines.append(f"{MEMORY_NAME}{text} {usage.byte_size}\n")
    if lines:
        yield TextMetric(MEMORY_NAME, MEMORY_HELP, "gauge", lines)


def _gauge(family: ModelFamily, models: list[_Model]) -> Metric:
    name, read = family.name, family.read
    lines = [
        f"{name}{model.text} {number(read(model.statistics, model.gauges))}\n" for model in models
    ]
    return TextMetric(name, family.help, family.kind, lines)
