"""Results of analyses with values that a test chooses."""

from __future__ import annotations

import msgspec

from tritonpy_analyzer.space import BATCH, BATCHING, DELAY, INSTANCES
from tritonpy_analyzer.study import (
    CandidateResult,
    CurvePoint,
    DroppedWindows,
    Interval,
    Study,
)


def candidate(batch=16, status="recommended", rate=800.0, **more):
    made = CandidateResult(
        settings=[("toy", BATCH, batch), ("toy", INSTANCES, 1), ("toy", BATCHING, True), ("toy", DELAY, 0)],
        text=f"batch {batch}, 1 instance, dynamic batching",
        changes={} if status == "present" else {"toy": {BATCH: batch}},
        status=status, windows=9, rate=Interval(rate, 0.97 * rate, 1.03 * rate),
        gain=None if status == "present" else Interval(2.0, 1.8, 2.2),
        latencies={"p50": Interval(0.004, 0.0039, 0.0041), "p99": Interval(0.019, 0.018, 0.0195)}, requests=2500,
        memory_cpu=64 << 20, queue_us=1500.0, compute_us=900.0, batches={1: 20, 8: 90}, shares={"toy": 1.0},
        curve=[CurvePoint(share * rate, Interval(0.02 * share, 0.018 * share, None), 900) for share in (0.5, 0.9, 1.1)],
    )  # fmt: skip
    return msgspec.structs.replace(made, **more)


def study(**more):
    best, present = candidate(), candidate(4, "present", 400.0)
    others = [
        candidate(32, "out", 600.0, reason="worse than batch 16"),
        candidate(8, "measured", 700.0),
    ]
    made = Study(
        status="found", models=["toy"], constraints=["p99<20 ms"], objectives=["maximize rate"],
        load="the highest rate of Poisson arrivals within the latency limit", command="tritonpy analyze toy",
        server="triton 0.1.0", machine="a processor, 2 cores", seconds=180.4, minutes=3.0, seed=1, interrupted=False,
        recommended=best, present=present, candidates=[best, *others, present], limited_by="the queue", violated="",
        windows=120, dropped=DroppedWindows(2, {"other processes used 90% of the processors": 2}),
        importance={"toy: max_batch_size": 0.8},
    )  # fmt: skip
    return msgspec.structs.replace(made, **more)
