"""The result of a level, computed from its windows."""

from __future__ import annotations

from itertools import accumulate

from tritonpy_bench.measurement import MeasuredLevel
from tritonpy_bench.options import BenchOptions
from tritonpy_bench.report.result import LevelResult, TimelinePoint, figures
from tritonpy_bench.stability import AGREEING, window
from tritonpy_bench.windows import is_stable
from tritonpy_load_generator.figures.client_verdict import client_warnings
from tritonpy_load_generator.figures.server_share import combine
from tritonpy_load_generator.figures.snapshot import Snapshot, join_consecutive

_UNANSWERED_NS = 1_000_000_000


def make_level_result(measured: MeasuredLevel, options: BenchOptions, batch: int) -> LevelResult:
    """Summarize the last windows, at most three; `batch` is inferences per request."""
    last = measured.windows[-AGREEING:]
    whole = join_consecutive([each.counted for each in last])
    seconds = max(whole.seconds, 1e-9)
    watched = window(whole, options.percentile).latency_ns / 1e3
    finished = whole.succeeded + whole.failed
    return LevelResult(
        mode=_mode(options),
        level=measured.level,
        stable=is_stable(options, [each.counted for each in measured.windows]),
        counted=bool(options.request_count),
        windows=len(measured.windows),
        seconds=whole.seconds,
        interrupted=measured.interrupted,
        kept=whole.succeeded > 0
        and (not options.latency_threshold or watched <= options.latency_threshold * 1e3),
        watched=watched,
        requests=whole.succeeded,
        failed=whole.failed,
        errors=dict(sorted(whole.errors.items(), key=lambda item: -item[1])),
        responses=whole.responses,
        requests_per_s=whole.succeeded / seconds,
        inferences_per_s=whole.succeeded * batch / seconds,
        responses_per_s=whole.responses / seconds,
        latency=figures(whole.latency),
        service=figures(whole.service),
        late=figures(whole.late),
        waited=figures(whole.waited),
        first=figures(whole.first),
        between=figures(whole.between),
        client_cpu_us=whole.cpu_ns / 1e3 / finished if finished else 0.0,
        client_busiest=whole.busiest,
        client_starved=whole.starved,
        complaints=tuple(_warnings(whole, measured, options)),
        in_flight=whole.in_flight,
        unsent=whole.unsent,
        oldest_ms=whole.oldest_ns / 1e6,
        server=tuple(
            combine(shares) for shares in zip(*(each.server for each in last), strict=False)
        ),
        timeline=_timeline(measured.snapshots),
    )


def _mode(options: BenchOptions) -> str:
    if options.request_intervals is not None:
        return "request_intervals"
    return "concurrency" if options.request_rate_range is None else "request_rate"


def _warnings(whole: Snapshot, measured: MeasuredLevel, options: BenchOptions) -> list[str]:
    intended = (
        measured.level
        if options.request_rate_range is not None and not options.request_count
        else None
    )
    found = client_warnings(whole, intended)
    if whole.oldest_ns > max(whole.latency.most, _UNANSWERED_NS):
        found.append(
            f"{whole.in_flight + whole.unsent} requests had no response at the end, "
            f"the oldest for {whole.oldest_ns / 1e9:.1f} s, "
            "longer than any measured latency: the latencies exclude them"
        )
    return found


def _timeline(snapshots: tuple[Snapshot, ...]) -> tuple[TimelinePoint, ...]:
    ends = accumulate(snapshot.seconds for snapshot in snapshots)
    return tuple(
        TimelinePoint(
            at_s=round(at, 3),
            requests_per_s=snapshot.succeeded / max(snapshot.seconds, 1e-9),
            failed=snapshot.failed,
            p50=snapshot.latency.percentile(50) / 1e3,
            p99=snapshot.latency.percentile(99) / 1e3,
        )
        for at, snapshot in zip(ends, snapshots, strict=True)
    )
