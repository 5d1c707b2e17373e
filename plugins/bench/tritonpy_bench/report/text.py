"""A level's result as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from tritonpy_bench.figures.server_share import ServerShare
from tritonpy_bench.report.result import Figures, LevelResult
from tritonpy_bench.report.wording import duration, level_name, rate, verdict, windows


def level_lines(result: LevelResult, decoupled: bool) -> Iterator[str]:
    """Yield everything that a reader must see; nothing that went wrong is left out."""
    yield f"{level_name(result)}: {verdict(result)} ({windows(result)}, {result.seconds:.1f} s)"
    yield f"  throughput   {rate(result.requests_per_s)} requests/s, {rate(result.inferences_per_s)} inferences/s ({result.requests:,} requests)"
    yield f"  latency      {_spread(result.latency)}"
    if result.mode != "concurrency":
        yield f"    of it      {_open_loop(result)}"
        yield f"  service time {_spread(result.service)}  (from when it went out)"
    if decoupled:
        yield f"  responses    {rate(result.responses_per_s)}/s, {result.responses / max(result.requests, 1):.2f} per request"
        yield f"  to the first {_spread(result.first)}"
        yield f"  between them {_spread(result.between)}"
    for share in result.server:
        yield f"  server       {server_line(share)}"
    yield (
        f"  client       {result.client_cpu_us:.1f} us of processor time per request, {result.client_busiest:.0%} of a core in its "
        f"busiest process, {result.client_starved:.0%} of the time without one"
    )
    if result.failed:
        yield f"  FAILED       {result.failed:,} requests"
        for text, count in result.errors.items():
            yield f"    {count:,} x {text}"
    for complaint in result.complaints:
        yield f"  WARNING      {complaint}"


def server_line(share: ServerShare) -> str:
    """Return what a model's statistics say."""
    stages = {name.replace("_", " "): stage for name, stage in share.stages.items() if stage.count or name == "queue"}
    shown = [f"{name} {duration(stage.mean_us)}" for name, stage in stages.items() if name not in {"success", "fail"}]
    sizes = ", ".join(f"{size} x {count:,}" for size, count in share.batches.items())
    text = f"{share.model}: {', '.join(shown)}; {share.executions:,} executions of {share.mean_batch:.1f} inferences"
    failed = share.stages["fail"].count
    return (
        text
        + (f" (batch size x executions: {sizes})" if len(share.batches) > 1 else "")
        + (f"; {failed:,} failed" if failed else "")
    )


def _spread(told: Figures) -> str:
    if not told.count:
        return "none"
    parts = [("mean", told.mean), ("p50", told.p50), ("p90", told.p90), ("p95", told.p95), ("p99", told.p99)]
    parts += [("p99.9", told.p999), ("max", told.most)]
    return "  ".join(f"{name} {duration(value)}" for name, value in parts)


def _open_loop(result: LevelResult) -> str:
    return (
        f"generator late p50 {duration(result.late.p50)} p99 {duration(result.late.p99)} max {duration(result.late.most)}; "
        f"waited for a connection or sequence p50 {duration(result.waited.p50)} p99 {duration(result.waited.p99)}"
    )
