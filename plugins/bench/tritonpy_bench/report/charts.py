"""Charts of a report on one or several results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tritonpy_bench.report.result import LevelResult, Result, TimelinePoint
from tritonpy_bench.report.svg import (
    Axis,
    Line,
    line_chart,
    linear_axis,
    percentile_axis,
    stacked_bars,
)
from tritonpy_bench.report.wording import duration, level_name, rate

Named = Sequence[tuple[str, Result]]
_STAGES = ("queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss")
_MAX_CURVES = 8


def throughput_chart(results: Named) -> str:
    """Draw latency against throughput, a point per level: median and p99 (dashed)."""
    lines = []
    for number, (name, result) in enumerate(results):
        levels = _successful_levels(result)
        for percent, dashed in ((50, False), (99, True)):
            points = [(level.inferences_per_s, level.latency.at(percent)) for level in levels]
            tooltips = [
                f"{name}, {level_name(level)}: {rate(x)} inferences/s, p{percent} {duration(y)}"
                for level, (x, y) in zip(levels, points, strict=True)
            ]
            lines.append(Line(f"{name} p{percent}", number, points, tooltips, dashed))
    return line_chart(lines, _axis("inferences/s", lines, 0), _axis("latency", lines, 1))


def percentile_chart(results: Named) -> str:
    """Draw each level's latency by percentile; of many levels, first, last and some between."""
    chosen = [(name, level) for name, result in results for level in _successful_levels(result)]
    if len(chosen) > _MAX_CURVES:
        step = (len(chosen) - 1) / (_MAX_CURVES - 1)
        chosen = [chosen[round(number * step)] for number in range(_MAX_CURVES)]
    lines = []
    for number, (name, level) in enumerate(chosen):
        most = 100 * (
            1 - 1 / max(level.latency.count, 2)
        )  # the number of requests limits the resolution
        points = [(percent, value) for percent, value in level.latency.curve if percent <= most]
        tooltips = [
            f"{name}, {level_name(level)}: {percent:g} % within {duration(value)}"
            for percent, value in points
        ]
        lines.append(
            Line(
                f"{name}, {level_name(level)}" if name else level_name(level),
                number,
                points,
                tooltips,
            )
        )
    most = max((x for line in lines for x, _ in line.points), default=99.0)
    return line_chart(lines, percentile_axis("percentile", most), _axis("latency", lines, 1))


def time_chart(results: Named, latency: bool) -> str:
    """Draw requests/s or the 99th percentile over time, with the levels of each result in order."""
    lines = []
    for number, (name, result) in enumerate(results):
        moments = list(_timeline_points(result))
        points = [(at, level.p99 if latency else level.requests_per_s) for at, _, level in moments]
        tooltips = [
            (
                f"{at:.1f} s, {level_text}: {rate(moment.requests_per_s)} requests/s, "
                f"p99 {duration(moment.p99)}, {moment.failed:,} failed"
            )
            for at, level_text, moment in moments
        ]
        lines.append(Line(name or result.model, number, points, tooltips))
    axis_name = "p99 latency" if latency else "requests/s"
    return line_chart(
        lines,
        _axis("seconds", lines, 0),
        _axis(axis_name, lines, 1) if latency else linear_axis(axis_name, _maximum(lines, 1), rate),
    )


def server_chart(results: Named) -> str:
    """Draw the server's time per request and stage: one bar per level and model."""
    bars = []
    for name, result in results:
        for level in result.levels:
            for share in level.server:
                label = " ".join(
                    part
                    for part in (
                        name,
                        f"{level.level:g}",
                        share.model if len(level.server) > 1 else "",
                    )
                    if part
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
    return stacked_bars(bars) if bars else "<p>The server returned no statistics.</p>"


def _timeline_points(result: Result) -> Iterator[tuple[float, str, TimelinePoint]]:
    before = 0.0
    for level in result.levels:
        for moment in level.timeline:
            yield before + moment.at_s, level_name(level), moment
        before += level.timeline[-1].at_s if level.timeline else 0.0


def _successful_levels(result: Result) -> list[LevelResult]:
    return [level for level in result.levels if level.requests]


def _axis(name: str, lines: Sequence[Line], dimension: int) -> Axis:
    format_value = duration if "latency" in name else rate
    return linear_axis(name, _maximum(lines, dimension), format_value)


def _maximum(lines: Sequence[Line], dimension: int) -> float:
    return max((point[dimension] for line in lines for point in line.points), default=0.0)
