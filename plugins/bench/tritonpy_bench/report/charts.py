"""The plots of a report, of one or several results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tritonpy_bench.report.result import LevelResult, Moment, Result
from tritonpy_bench.report.svg import Axis, Line, chart, linear, nines, stacked
from tritonpy_bench.report.wording import duration, level_name, rate

Named = Sequence[tuple[str, Result]]
_STAGES = ("queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss")
_MOST_CURVES = 8


def throughput_chart(results: Named) -> str:
    """Draw latency against throughput: a point per level, the median and the 99th percentile (dashed)."""
    lines = []
    for number, (name, result) in enumerate(results):
        levels = _succeeded(result)
        for percent, dashed in ((50, False), (99, True)):
            points = [(level.inferences_per_s, level.latency.at(percent)) for level in levels]
            told = [
                f"{name}, {level_name(level)}: {rate(x)} inferences/s, p{percent} {duration(y)}"
                for level, (x, y) in zip(levels, points, strict=True)
            ]
            lines.append(Line(f"{name} p{percent}", number, points, told, dashed))
    return chart(lines, _axis("inferences/s", lines, 0), _axis("latency", lines, 1))


def percentile_chart(results: Named) -> str:
    """Draw the latency of each level by percentile; of many levels the first, the last and some between."""
    chosen = [(name, level) for name, result in results for level in _succeeded(result)]
    if len(chosen) > _MOST_CURVES:
        step = (len(chosen) - 1) / (_MOST_CURVES - 1)
        chosen = [chosen[round(number * step)] for number in range(_MOST_CURVES)]
    lines = []
    for number, (name, level) in enumerate(chosen):
        most = 100 * (1 - 1 / max(level.latency.count, 2))  # finer than the requests that were made says nothing
        points = [(percent, value) for percent, value in level.latency.curve if percent <= most]
        told = [f"{name}, {level_name(level)}: {percent:g} % within {duration(value)}" for percent, value in points]
        lines.append(Line(f"{name}, {level_name(level)}" if name else level_name(level), number, points, told))
    most = max((x for line in lines for x, _ in line.points), default=99.0)
    return chart(lines, nines("percentile", most), _axis("latency", lines, 1))


def time_chart(results: Named, latency: bool) -> str:
    """Draw what happened in the course of time, the levels of each result one after another: requests/s, or the 99th percentile."""
    lines = []
    for number, (name, result) in enumerate(results):
        moments = list(_course(result))
        points = [(at, level.p99 if latency else level.requests_per_s) for at, _, level in moments]
        told = [
            f"{at:.1f} s, {where}: {rate(moment.requests_per_s)} requests/s, p99 {duration(moment.p99)}, {moment.failed:,} failed"
            for at, where, moment in moments
        ]
        lines.append(Line(name or result.model, number, points, told))
    what = "p99 latency" if latency else "requests/s"
    return chart(
        lines, _axis("seconds", lines, 0), _axis(what, lines, 1) if latency else linear(what, _most(lines, 1), rate)
    )


def server_chart(results: Named) -> str:
    """Draw where the server's time went, per request: one bar per level and model."""
    bars = []
    for name, result in results:
        for level in result.levels:
            for share in level.server:
                label = " ".join(
                    part for part in (name, f"{level.level:g}", share.model if len(level.server) > 1 else "") if part
                )
                pieces = [
                    (
                        stage.replace("_", " "),
                        share.stages[stage].mean_us,
                        f"{stage}: {duration(share.stages[stage].mean_us)}",
                    )
                    for stage in _STAGES
                    if share.stages[stage].count
                ]
                if pieces:
                    bars.append((label, pieces))
    return stacked(bars) if bars else "<p>The server told no statistics.</p>"


def _course(result: Result) -> Iterator[tuple[float, str, Moment]]:
    before = 0.0
    for level in result.levels:
        for moment in level.timeline:
            yield before + moment.at_s, level_name(level), moment
        before += level.timeline[-1].at_s if level.timeline else 0.0


def _succeeded(result: Result) -> list[LevelResult]:
    return [level for level in result.levels if level.requests]


def _axis(name: str, lines: Sequence[Line], of: int) -> Axis:
    show = duration if "latency" in name else rate
    return linear(name, _most(lines, of), show)


def _most(lines: Sequence[Line], of: int) -> float:
    return max((point[of] for line in lines for point in line.points), default=0.0)
