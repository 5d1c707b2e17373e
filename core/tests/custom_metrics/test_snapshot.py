from __future__ import annotations

import math

import msgspec

from tritonpy.custom_metrics.kind import MetricKind
from tritonpy.custom_metrics.snapshot import FamilySnapshot, HistogramSnapshot, MetricSnapshot


def test_a_snapshot_can_be_encoded_and_decoded() -> None:
    metrics = [MetricSnapshot({"a": "b"}, -math.inf), MetricSnapshot({}, 0, HistogramSnapshot([0.5], [1], 2, math.inf))]
    family = FamilySnapshot("f", "of all kinds", MetricKind.HISTOGRAM, metrics)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(family), type=FamilySnapshot) == family
