from __future__ import annotations

import pytest

from tritonpy.config.server.latency_settings import NO_LATENCIES, LatencySettings
from tritonpy.statistics import PerResponseStatistics
from tritonpy.statistics.decoupled_responses import DecoupledResponseCounters
from tritonpy.statistics.first_responses import FirstResponseHistogram
from tritonpy.statistics.gpu_counters import GpuCounters
from tritonpy.statistics.summaries import LatencySummaries
from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInstanceGroup


def statistics(
    *, decoupled: bool = False, gpu: bool = False, latencies: LatencySettings = NO_LATENCIES
) -> PerResponseStatistics:
    config = ModelConfig()
    if gpu:
        config.instance_group.add(kind=ModelInstanceGroup.KIND_GPU, gpus=[0])
    config.model_transaction_policy.decoupled = decoupled
    return PerResponseStatistics(config, latencies)


def test_most_models_have_no_counters_per_response() -> None:
    plain = statistics()
    assert plain.counters == ()
    assert (plain.responses(), plain.first_response(), plain.summaries(), plain.shares("m", 1)) == ({}, None, {}, [])


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"decoupled": True}, DecoupledResponseCounters),
        ({"gpu": True}, GpuCounters),
        ({"latencies": LatencySettings(histograms=True)}, FirstResponseHistogram),
        ({"latencies": LatencySettings(summaries=True)}, LatencySummaries),
    ],
)
def test_only_the_configured_counters_exist(given: dict[str, object], kind: type) -> None:
    (counter,) = statistics(**given).counters  # type: ignore[arg-type]
    assert type(counter) is kind


def test_all_counters_can_be_enabled_together() -> None:
    every = statistics(
        decoupled=True, gpu=True, latencies=LatencySettings(histograms=True, summaries=True, quantiles="0.5:0.1")
    )
    assert len(every.counters) == 4
    assert [share.gpu for share in every.shares("m", 1)] == [None, 0]
    assert every.first_response() is not None
    assert every.summaries()["queue"].quantiles == [(0.5, None)]


def test_a_cache_is_measured_with_summaries() -> None:
    plain, summarized = statistics(), statistics(latencies=LatencySettings(summaries=True))
    for each in (plain, summarized):
        each.use_cache()
    assert plain.summaries() == {}
    assert {"cache_hit", "cache_miss"} < set(summarized.summaries())
