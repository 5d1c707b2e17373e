"""Benchmark results with values that a test chooses."""

from __future__ import annotations

import msgspec

from tritonpy_bench.options import BenchOptions
from tritonpy_bench.report.result import FORMAT, LevelResult, Result, TimelinePoint, figures
from tritonpy_load_generator.figures.histogram import make_histogram
from tritonpy_load_generator.figures.server_share import COUNTS, ServerShare, StageShare
from tritonpy_load_generator.target.metadata import (
    ModelDescription,
    ServerDescription,
    TargetDescription,
    TensorDescription,
)

US = 1000
TARGET = TargetDescription(
    ServerDescription("toy", "1", ("binary_tensor_data",)),
    ModelDescription(
        "m",
        "",
        (TensorDescription("A", "INT32", (3,)),),
        (TensorDescription("OUT", "FP32", (-1,)),),
    ),
)


def options(**more):
    return BenchOptions(model="m", **more)


def level(value=1.0, latencies=(100, 200, 300), **more):
    latencies_us = figures(make_histogram([each * US for each in latencies]))
    none = figures(make_histogram([]))
    stages = {
        name: StageShare(10, 10 * 5 * US)
        if name in {"success", "queue", "compute_infer"}
        else StageShare()
        for name in COUNTS
    }
    made = LevelResult(
        mode="concurrency", level=value, stable=True, counted=False, windows=3, seconds=1.5, interrupted=False, kept=True, watched=200.0,
        requests=len(latencies), failed=0, errors={}, responses=len(latencies), requests_per_s=1234.5, inferences_per_s=2469.0,
        responses_per_s=1234.5, latency=latencies_us, service=latencies_us, late=none, waited=none, first=none, between=none, client_cpu_us=12.3,
        client_busiest=0.25, client_starved=0.01, complaints=(), in_flight=1, unsent=0, oldest_ms=0.1,
        server=(ServerShare("m", 10, 5, stages, {1: 2, 4: 3}),),
        timeline=(TimelinePoint(0.5, 1000.0, 0, 100.0, 300.0), TimelinePoint(1.0, 1400.0, 0, 110.0, 310.0)),
    )  # fmt: skip
    return msgspec.structs.replace(made, **more)


def result(*levels, **more):
    made = Result(
        format=FORMAT, tool="tritonpy 0", started="2026-01-02T03:04:05+00:00", command="tritonpy bench m", protocol="http",
        url="host:8000", server="toy 1", model="m", version="", batch=2, streaming=False, decoupled=False, sequence=False,
        percentile=None, latency_threshold_ms=0.0, notes=(), trouble="", levels=levels or (level(),),
    )  # fmt: skip
    return msgspec.structs.replace(made, **more)
