"""Text report of one level."""

from __future__ import annotations

from collections.abc import Iterator

from tritonpy_bench.report.result import Figures, LevelResult
from tritonpy_bench.report.wording import duration, level_name, rate, verdict, windows
from tritonpy_load_generator.figures.server_share import ServerShare


def level_lines(result: LevelResult, decoupled: bool) -> Iterator[str]:
    """Yield the lines of a level's report, including all errors and warnings."""
    yield f"{level_name(result)}: {verdict(result)} ({windows(result)}, {result.seconds:.1f} s)"
    yield (
        f"  throughput   {rate(result.requests_per_s)} requests/s, "
        f"{rate(result.inferences_per_s)} inferences/s ({result.requests:,} requests)"
    )
    yield f"  latency      {_spread(result.latency)}"
    if result.mode != "concurrency":
        yield f"    of which   {_open_loop(result)}"
        yield f"  service time {_spread(result.service)}  (from when the request was sent)"
    if decoupled:
        yield (
            f"  responses    {rate(result.responses_per_s)}/s, "
            f"{result.responses / max(result.requests, 1):.2f} per request"
        )
        yield f"  first after  {_spread(result.first)}"
        yield f"  between      {_spread(result.between)}"
    for share in result.server:
        yield f"  server       {server_line(share)}"
    yield (
        f"  client       {result.client_cpu_us:.1f} us of CPU time per request; busiest process: "
        f"{result.client_busiest:.0%} of a core, "
        f"{result.client_starved:.0%} of the time ready without a CPU"
    )
    if result.failed:
        yield f"  FAILED       {result.failed:,} requests"
        for text, count in result.errors.items():
            yield f"    {count:,} x {text}"
    for complaint in result.complaints:
        yield f"  WARNING      {complaint}"


def server_line(share: ServerShare) -> str:
    """Return a model's server statistics as one line."""
    stages = {
        name.replace("_", " "): stage
        for name, stage in share.stages.items()
        if stage.count or name == "queue"
    }
    displayed = [
        f"{name} {duration(stage.mean_us)}"
        for name, stage in stages.items()
        if name not in {"success", "fail"}
    ]
    sizes = ", ".join(f"{size} x {count:,}" for size, count in share.batches.items())
    text = (
        f"{share.model}: {', '.join(displayed)}; {share.executions:,} executions of "
        f"{share.mean_batch:.1f} inferences"
    )
    failed = share.stages["fail"].count
    return (
        text
        + (f" (batch size x executions: {sizes})" if len(share.batches) > 1 else "")
        + (f"; {failed:,} failed" if failed else "")
    )


def _spread(values: Figures) -> str:
    if not values.count:
        return "none"
    parts = [
        ("mean", values.mean),
        ("p50", values.p50),
        ("p90", values.p90),
        ("p95", values.p95),
        ("p99", values.p99),
    ]
    parts += [("p99.9", values.p999), ("max", values.most)]
    return "  ".join(f"{name} {duration(value)}" for name, value in parts)


def _open_loop(result: LevelResult) -> str:
    return (
        f"generator late p50 {duration(result.late.p50)} p99 {duration(result.late.p99)} max "
        f"{duration(result.late.most)}; "
        f"waited for a connection or sequence p50 {duration(result.waited.p50)} p99 "
        f"{duration(result.waited.p99)}"
    )
