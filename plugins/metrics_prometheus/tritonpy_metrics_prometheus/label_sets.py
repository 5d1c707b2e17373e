"""Label sets of a model version: one, and another for each GPU with instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tritonpy.metrics import ModelGauges, ModelStatistics
from tritonpy_metrics_prometheus.exposition import labels_text


@dataclass(frozen=True, slots=True)
class LabelSet:
    """Statistics under one set of labels. `text` is its formatted form."""

    labels: Mapping[str, str]
    text: str
    statistics: ModelStatistics
    failures: Mapping[str, int]


def model_labels(statistics: ModelStatistics, gauges: ModelGauges) -> dict[str, str]:
    """Return the labels that every sample of a model version has."""
    labels = {"model": statistics.name}
    if statistics.namespace:
        labels["namespace"] = statistics.namespace
    labels["version"] = statistics.version
    labels.update((f"_{key}", value) for key, value in gauges.tags.items())
    return labels


def label_sets(
    labels: Mapping[str, str],
    statistics: ModelStatistics,
    gauges: ModelGauges,
    uuids: Sequence[str],
) -> list[LabelSet]:
    """Return the statistics of a model version by label set. `uuids` are those of the visible GPUs.

    If the UUID of a GPU is unknown, the statistics are not split.
    """
    if not gauges.shares or any(
        share.gpu is not None and share.gpu >= len(uuids) for share in gauges.shares
    ):
        return [_label_set(labels, statistics, gauges.failures)]
    return [
        _label_set(
            labels if share.gpu is None else {**labels, "gpu_uuid": uuids[share.gpu]},
            share.statistics,
            share.failures,
        )
        for share in gauges.shares
    ]


def _label_set(
    labels: Mapping[str, str], statistics: ModelStatistics, failures: Mapping[str, int]
) -> LabelSet:
    return LabelSet(labels, labels_text(tuple(labels.items())), statistics, failures)
