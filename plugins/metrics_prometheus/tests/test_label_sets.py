from __future__ import annotations

import pytest

from tritonpy.metrics import Duration, GpuShare, InferStatistics, ModelStatistics
from tritonpy_metrics_prometheus.collector import EngineCollector
from tritonpy_metrics_prometheus.exposition import text_format


def share(gpu, count, rejected=0):
    times = InferStatistics(*(Duration(count, count * 5000) for _ in range(8)))
    return GpuShare(
        gpu,
        ModelStatistics("addsub", "1", 0, count, count, times, {}, [], []),
        {"REJECTED": rejected},
    )


def lines(engine, uuids, prefix):
    found = text_format(EngineCollector(engine, uuids=uuids).collect()).decode().splitlines()
    return [line.removeprefix(prefix) for line in found if line.startswith(prefix)]


@pytest.fixture
def on_gpus(engine):
    engine.add()
    engine.extras["addsub", "1"].shares = [share(None, 0, rejected=2), share(0, 4), share(1, 7)]
    return engine


def test_executions_on_a_gpu_have_its_uuid(on_gpus):
    for family, each in (
        ("nv_inference_count", 1),
        ("nv_inference_exec_count", 1),
        ("nv_inference_queue_duration_us", 5),
    ):
        assert lines(on_gpus, ["GPU-a", "GPU-b"], family) == [
            '{model="addsub",version="1"} 0',
            f'{{gpu_uuid="GPU-a",model="addsub",version="1"}} {4 * each}',
            f'{{gpu_uuid="GPU-b",model="addsub",version="1"}} {7 * each}',
        ]


def test_other_counts_have_no_uuid(on_gpus):
    rejected = [
        each
        for each in lines(on_gpus, ["GPU-a", "GPU-b"], "nv_inference_request_failure")
        if "REJECTED" in each
    ]
    assert rejected == [
        '{model="addsub",reason="REJECTED",version="1"} 2',
        '{gpu_uuid="GPU-a",model="addsub",reason="REJECTED",version="1"} 0',
        '{gpu_uuid="GPU-b",model="addsub",reason="REJECTED",version="1"} 0',
    ]


def test_gauges_are_not_split_by_gpu(on_gpus):
    assert lines(on_gpus, ["GPU-a", "GPU-b"], "nv_inference_pending") == [
        '_request_count{model="addsub",version="1"} 4'
    ]


@pytest.mark.parametrize("uuids", [[], ["GPU-a"]])
def test_without_a_known_uuid_counts_are_not_split(on_gpus, uuids):
    assert lines(on_gpus, uuids, "nv_inference_count") == ['{model="addsub",version="1"} 6']
