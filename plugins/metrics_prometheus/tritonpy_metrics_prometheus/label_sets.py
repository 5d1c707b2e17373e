"""The label sets of a model version: one, and one more for each GPU that it has instances on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tritonpy import ModelGauges, ModelStatistics
from tritonpy_metrics_prometheus.exposition import labels_text


@dataclass(frozen=True, slots=True)
class LabelSet:
    """What is counted under these labels; `text` is how they are written."""

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
    labels: Mapping[str, str], statistics: ModelStatistics, gauges: ModelGauges, uuids: Sequence[str]
) -> list[LabelSet]:
    """Return the counts of a model version with `labels` by their labels; `uuids` are those of the visible GPUs, by number.

    Where a GPU's UUID is not known, the model's counts stay together.
    """
    if not gauges.shares or any(share.gpu is not None and share.gpu >= len(uuids) for share in gauges.shares):
        return [_label_set(labels, statistics, gauges.failures)]
    return [
        _label_set(
            labels if share.gpu is None else {**labels, "gpu_uuid": uuids[share.gpu]}, share.statistics, share.failures
        )
        for share in gauges.shares
    ]


def _label_set(labels: Mapping[str, str], statistics: ModelStatistics, failures: Mapping[str, int]) -> LabelSet:
    return LabelSet(labels, labels_text(tuple(labels.items())), statistics, failures)
