"""Response statistics of a served model, in addition to the counters that every model has."""

from __future__ import annotations

import pytest

from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types.errors import StartupError

from ..toys.decoupled import Repeat
from ..toys.doubler import Doubler
from ..toys.one_model import one_model
from ..toys.serving import ToyPlugin, ask, config_of, serving, toy_plugins

BUCKETS = """
model_metrics {{ metric_control {{
    metric_identifier {{ family: "nv_inference_first_response_histogram_ms" }} histogram_options {{ buckets: [{}] }}
}} }}
"""
BOTH = {"histograms": True, "summaries": True, "quantiles": "0.5:0.1"}


def test_responses_of_a_decoupled_model_are_counted_by_index(
    model_repository: ModelRepository,
) -> None:
    model_repository.add(
        "many", config_of("repeat", more="model_transaction_policy { decoupled: true }")
    )
    recorder = RecordingSink()
    with serving(model_repository, toy_plugins(ToyPlugin({"repeat": Repeat}))) as server:
        recorder.wait(
            *[
                ask(server.engine, recorder, "many", [count], accepts_decoupled=True)
                for count in (2, 0, 1)
            ]
        )
        (statistics,) = server.engine.statistics("many")
    by_index = statistics.response_stats
    assert {index: (each.success.count, each.empty_response.count) for index, each in by_index.items()} == {
        "0": (2, 1), "1": (1, 1), "2": (0, 1),
    }  # fmt: skip
    assert [
        (each.compute_infer.count, each.compute_output.count) for each in by_index.values()
    ] == [
        (3, 2),
        (2, 1),
        (1, 0),
    ]
    assert (
        by_index["0"].success.ns
        == by_index["0"].compute_infer.ns
        + by_index["0"].compute_output.ns
        - by_index["0"].empty_response.ns
    )


def test_other_models_have_no_response_statistics(model_repository: ModelRepository) -> None:
    recorder = RecordingSink()
    with one_model(model_repository, Doubler) as server:
        recorder.wait(ask(server.engine, recorder, "m", [[1]]))
        (statistics,), gauges = server.engine.statistics("m"), server.engine.gauges()["m", "1"]
    assert (statistics.response_stats, gauges.first_response, gauges.summaries) == ({}, None, {})


def test_distributions_are_measured_if_configured(model_repository: ModelRepository) -> None:
    recorder = RecordingSink()
    with one_model(
        model_repository, Doubler, more=BUCKETS.format("1, 250000.5"), latencies=BOTH
    ) as server:
        recorder.wait(*[ask(server.engine, recorder, "m", [[number]]) for number in range(3)])
        gauges = server.engine.gauges()["m", "1"]
    assert gauges.first_response is not None
    assert (gauges.first_response.bounds, gauges.first_response.counts[1]) == ([1, 250000.5], 3)
    assert {summary.count for summary in gauges.summaries.values()} == {3}
    assert all(
        value is not None for summary in gauges.summaries.values() for _, value in summary.quantiles
    )


def test_buckets_that_do_not_ascend_fail_the_load(
    model_repository: ModelRepository, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        pytest.raises(StartupError, match="failed to load all models: m"),
        one_model(model_repository, Doubler, more=BUCKETS.format("5, 1"), latencies=BOTH),
    ):
        pytest.fail("it started")
    assert "Bucket Boundaries must be strictly sorted" in caplog.text


def test_unused_invalid_buckets_are_ignored(model_repository: ModelRepository) -> None:
    with one_model(model_repository, Doubler, more=BUCKETS.format("5, 1")) as server:
        assert server.engine.is_model_ready("m")
