"""Report as one self-contained HTML file without scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from tritonpy_bench.report.charts import (
    Named,
    percentile_chart,
    server_chart,
    throughput_chart,
    time_chart,
)
from tritonpy_bench.report.result import LevelResult, Result
from tritonpy_bench.report.text import server_line
from tritonpy_bench.report.wording import duration, level_name, rate, verdict

_STYLE = (Path(__file__).parent / "report.css").read_text(encoding="utf-8")
_COLUMNS = (
    "load", "requests/s", "inferences/s", "mean", "p50", "p90", "p95", "p99", "p99.9", "max",
    "service p99", "generator late p99",
    "failed", "client us/request", "measurement",
)  # fmt: skip


def write_html(path: Path, results: Sequence[Result]) -> None:
    """Write a report on one result, or a comparison of several. Raises OSError."""
    path.write_text(page(results), encoding="utf-8")


def page(results: Sequence[Result]) -> str:
    """Return the report as HTML."""
    named = list(zip(names(results), results, strict=True))
    title = results[0].title if len(results) == 1 else f"{len(results)} results of tritonpy bench"
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        f"<h1>{escape(title)}</h1>{''.join(_warnings(named))}{_plots(named)}"
        f"{''.join(map(_section, named))}</body></html>\n"
    )


def names(results: Sequence[Result]) -> list[str]:
    """Return a short, distinct name for each result; "" for a single one."""
    if len(results) == 1:
        return [""]
    candidates = [
        [result.server or result.url for result in results],
        [f"{result.server or result.url} {result.protocol}" for result in results],
        [
            f"{result.model} on {result.server or result.url} {result.protocol}"
            for result in results
        ],
    ]
    for candidate in candidates:
        if len(set(candidate)) == len(results):
            return candidate
    return [f"{number} {name}" for number, name in enumerate(candidates[0], start=1)]


def _plots(named: Named) -> str:
    plots = (
        ("Latency against throughput", throughput_chart(named)),
        ("Latency by percentile", percentile_chart(named)),
        ("Throughput over time", time_chart(named, latency=False)),
        ("Latency over time", time_chart(named, latency=True)),
        ("Time inside the server, mean per request", server_chart(named)),
    )
    return (
        '<div class="plots">'
        + "".join(f"<figure><figcaption>{name}</figcaption>{plot}</figure>" for name, plot in plots)
        + "</div>"
    )


def _warnings(named: Named) -> Iterator[str]:
    for name, result in named:
        source = f"{name}, " if name else ""
        if result.trouble:
            yield f'<p class="warning">{escape(f"{source}ended early: {result.trouble}")}</p>'
        for note in result.notes:
            yield f'<p class="note">{escape(source + note)}</p>'
        for level in result.levels:
            for complaint in level.complaints:
                yield (
                    f'<p class="warning">{escape(f"{source}{level_name(level)}: {complaint}")}</p>'
                )
            if level.failed:
                text = f"{source}{level_name(level)}: {level.failed:,} requests failed"
                yield f'<p class="warning">{escape(text)}</p>'


def _section(entry: tuple[str, Result]) -> str:
    name, result = entry
    summary = f"{result.title}, batch {result.batch}, started {result.started} with {result.tool}"
    head = "".join(f"<th>{escape(column)}</th>" for column in _COLUMNS)
    rows = "".join(_row(level) for level in result.levels)
    details = "".join(_details(level, result) for level in result.levels)
    return (
        f"<h2>{escape(name or 'Figures')}</h2><p>{escape(summary)}</p>"
        f"<pre>{escape(result.command)}</pre>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{details}"
    )


def _row(level: LevelResult) -> str:
    latency = level.latency
    spread = (
        latency.mean,
        latency.p50,
        latency.p90,
        latency.p95,
        latency.p99,
        latency.p999,
        latency.most,
    )
    cells = [
        level_name(level), rate(level.requests_per_s), rate(level.inferences_per_s),
        *map(duration, spread), duration(level.service.p99),
        duration(level.late.p99), f"{level.failed:,}", f"{level.client_cpu_us:.1f}", verdict(level),
    ]  # fmt: skip
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


def _details(level: LevelResult, result: Result) -> str:
    lines = [server_line(share) for share in level.server]
    if result.decoupled:
        lines.append(
            f"{level.responses / max(level.requests, 1):.2f} responses per request; "
            f"time to the first p50 {duration(level.first.p50)} "
            f"p99 {duration(level.first.p99)}; between them p50 {duration(level.between.p50)} "
            f"p99 {duration(level.between.p99)}"
        )
    lines += [f"{count:,} x {text}" for text, count in level.errors.items()]
    if not lines:
        return ""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<h3>{escape(level_name(level))}</h3><ul>{items}</ul>"
