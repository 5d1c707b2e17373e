"""The label sets of a model version: one, and one more for each GPU that it has instances on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tritonpy import ModelGauges, ModelStatistics


@dataclass(frozen=True, slots=True)
class LabelSet:
    """What is counted under these labels."""

    labels: Mapping[str, str]
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


def label_sets(statistics: ModelStatistics, gauges: ModelGauges, uuids: Sequence[str]) -> list[LabelSet]:
    """Return the counts of a model version by their labels; `uuids` are those of the visible GPUs, by number.

    Where a GPU's UUID is not known, the model's counts stay together.
    """
    labels = model_labels(statistics, gauges)
    if not gauges.shares or any(share.gpu is not None and share.gpu >= len(uuids) for share in gauges.shares):
        return [LabelSet(labels, statistics, gauges.failures)]
    return [
        LabelSet(
            labels if share.gpu is None else {**labels, "gpu_uuid": uuids[share.gpu]}, share.statistics, share.failures
        )
        for share in gauges.shares
    ]
