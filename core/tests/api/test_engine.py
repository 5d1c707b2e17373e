from __future__ import annotations

import msgspec

from tritonpy.api.engine import (
    Duration,
    GpuShare,
    InferStatistics,
    ModelGauges,
    ModelStatistics,
    SummarySnapshot,
)
from tritonpy_metrics import HistogramSnapshot


def test_gauges_can_be_sent_to_another_process() -> None:
    histogram = HistogramSnapshot([100.0, 500.0], [1, 2], 3, 905)
    summary = SummarySnapshot(3, 600, [(0.5, 200.0), (0.999, None)])
    times = InferStatistics(*(Duration(1, 2) for _ in range(8)))
    share = GpuShare(None, ModelStatistics("m", "1", 0, 1, 1, times, {}, [], []), {"BACKEND": 1})
    gauges = ModelGauges(
        {"BACKEND": 1}, 2, 0.5, 0, {"team": "me"}, histogram, {"queue": summary}, [share]
    )
    sent = msgspec.json.encode(msgspec.to_builtins(gauges))
    assert msgspec.convert(msgspec.json.decode(sent), ModelGauges) == gauges


def test_gauges_without_distributions_are_empty() -> None:
    gauges = ModelGauges({}, 0, 0.0, 0, {})
    assert (gauges.first_response, gauges.summaries, gauges.shares) == (None, {}, [])
