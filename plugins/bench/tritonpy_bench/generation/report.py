"""The reports of a benchmark of a language model: text, JSON, CSV and HTML."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from tritonpy_bench.generation.figures import LevelFigures, named_figures
from tritonpy_bench.report.svg import (
    Axis,
    Line,
    line_chart,
    linear_axis,
    percentile_axis,
)
from tritonpy_bench.report.wording import duration, rate
from tritonpy_load_generator.options import BadUsage

FORMAT = "tritonpy-bench-generation-1"
_STYLE = (Path(__file__).parents[1] / "report" / "report.css").read_text(encoding="utf-8")
_TITLES = {
    "ttft": "first token",
    "tpot": "per token",
    "icl": "between parts",
    "latency": "request",
}
_DEFINITIONS = """\
first token (TTFT): from sending a request to its first text
per token (TPOT; AIPerf: inter token latency): the rest of the time per token, one value per request
between parts (ITL; AIPerf: inter chunk latency): gaps in streams; a part may have several tokens
"""


class GenerationResult(msgspec.Struct, kw_only=True):
    """The result of one benchmark."""

    format: str
    tool: str
    started: str
    command: str
    model: str
    url: str
    endpoint_type: str
    names: str
    levels: list[LevelFigures]


def level_text(level: LevelFigures) -> str:
    """Return the report of a level as text."""
    return "\n".join(_lines(level))


def _lines(level: LevelFigures) -> Iterator[str]:
    ended = "interrupted" if level.interrupted else f"{level.seconds:.1f} s"
    yield f"{level.name}: {level.requests} requests in {ended}"
    goodput = "" if level.goodput is None else f", goodput {rate(level.goodput)} requests/s"
    yield f"  throughput    {rate(level.requests_per_s)} requests/s{goodput}"
    if level.output_tokens:
        yield (
            f"  tokens        {rate(level.output_tokens_per_s)}/s output, "
            f"{rate(level.total_tokens_per_s)}/s in all (counted by {level.counted_by})"
        )
        yield f"  lengths       {_lengths(level)}"
    for key, title in _TITLES.items():
        figure = level.figures.get(key)
        if figure is not None:
            values = [("mean", figure.avg), *((f"p{p}", figure.at(p)) for p in (50, 90, 95, 99))]
            spread = "  ".join(f"{name} {duration(1000 * value)}" for name, value in values)
            yield f"  {title:<14}{spread}"
    if level.server:
        yield f"  server        {_server(level.server)}"
    for complaint in complaints(level):
        yield f"  WARNING       {complaint}"


def complaints(level: LevelFigures) -> Iterator[str]:
    """Yield what makes the figures of a level doubtful."""
    for text, count in level.errors.items():
        yield f"{count:,} requests failed: {text}"
    if level.empty:
        yield f"{level.empty:,} responses were empty; they are in no figure"
    if level.short:
        yield f"{level.short:,} responses are shorter than wanted: the model ended them"
    if level.cancelled:
        yield f"{level.cancelled:,} requests were cancelled, as wanted; they are in no figure"
    if level.counted_by == "chunks" and level.output_tokens:
        yield "the server reports no token counts: parts of streams are counted as tokens"
    if level.late_ms > 1:
        yield f"the client was late: 1 % of the requests by more than {level.late_ms:.1f} ms"


def _lengths(level: LevelFigures) -> str:
    parts = []
    for key, name in (("isl", "input"), ("osl", "output")):
        figure = level.figures.get(key)
        if figure is not None:
            parts.append(f"{name} {figure.avg:.1f} tokens ({figure.min:.0f} to {figure.max:.0f})")
    if level.cached_tokens:
        parts.append(f"{level.cached_tokens / max(level.input_tokens, 1):.0%} of the input cached")
    return ", ".join(parts)


def _server(figures: dict[str, float]) -> str:
    parts = [
        f"{name.removesuffix('_ms')} {duration(1000 * value)}"
        for name, value in figures.items()
        if name.endswith("_ms")
    ]
    if queries := figures.get("prefix_queries"):
        parts.append(f"prefix hits {figures.get('prefix_hits', 0) / queries:.0%}")
    if "kv_cache_max" in figures:
        mean, most = figures["kv_cache_mean"], figures["kv_cache_max"]
        parts.append(f"KV cache {mean:.0%} mean, {most:.0%} max")
    if "waiting_max" in figures:
        mean, most = figures["waiting_mean"], figures["waiting_max"]
        parts.append(f"waiting {mean:.1f} mean, {most:.0f} max")
    if figures.get("preemptions"):
        parts.append(f"{figures['preemptions']:.0f} preemptions")
    return ", ".join(parts)


def write_json(path: Path, result: GenerationResult) -> None:
    """Write the result, and the figures of each level by the chosen names. Raises OSError."""
    document = msgspec.to_builtins(result)
    for level, written in zip(result.levels, document["levels"], strict=True):
        written["named"] = named_figures(level, result.names)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")


def is_generation_result(path: Path) -> bool:
    """Return whether a file has the result of a language model."""
    try:
        return FORMAT.encode() in path.read_bytes()
    except OSError:
        return False


def read_json(path: Path) -> GenerationResult:
    """Return a written result. Raises BadUsage."""
    try:
        result = msgspec.json.decode(path.read_bytes(), type=GenerationResult)
    except (OSError, msgspec.DecodeError) as error:
        raise BadUsage(f"--report {path}: {error}") from error
    if result.format != FORMAT:
        raise BadUsage(f"--report {path}: unknown format '{result.format}'")
    return result


def write_csv(path: Path, result: GenerationResult) -> None:
    """Write a row per level with the chosen names. Raises OSError."""
    rows = [{"level": level.name, **_flat(level, result.names)} for level in result.levels]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def _flat(level: LevelFigures, names: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in named_figures(level, names).items():
        if isinstance(value, dict):
            unit = value.pop("unit")
            found |= {f"{name} {each} ({unit})": number for each, number in value.items()}
        else:
            found[name] = value
    return found


def write_html(path: Path, results: Sequence[GenerationResult]) -> None:
    """Write a report with plots on one or several results. Raises OSError."""
    path.write_text(page(results), encoding="utf-8")


def page(results: Sequence[GenerationResult]) -> str:
    """Return the report as HTML."""
    title = f"{results[0].model}: {results[0].endpoint_type} at {results[0].url}"
    if len(results) > 1:
        title = f"{len(results)} benchmarks of language models"
    plots = "".join(
        f"<figure><figcaption>{name}</figcaption>{plot}</figure>" for name, plot in _plots(results)
    )
    warnings = "".join(
        f'<p class="warning">{escape(f"{_series(result, results)}{level.name}: {text}")}</p>'
        for result in results
        for level in result.levels
        for text in complaints(level)
    )
    definitions = "".join(f"<li>{escape(text)}</li>" for text in _DEFINITIONS.splitlines())
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        f'<h1>{escape(title)}</h1>{warnings}<div class="plots">{plots}</div>'
        f"{''.join(_section(result, results) for result in results)}<ul>{definitions}</ul>"
        "</body></html>\n"
    )


def _series(result: GenerationResult, results: Sequence[GenerationResult]) -> str:
    if len(results) == 1:
        return ""
    return f"{results.index(result) + 1} {result.model} at {result.url}, "


def _plots(results: Sequence[GenerationResult]) -> Iterator[tuple[str, str]]:
    yield (
        "Tokens per second and user against tokens per second in all (up and right is better)",
        _scatter(results, "rate_per_user", "tokens/s per user", rate),
    )
    yield (
        "Time to the first token against tokens per second in all",
        _scatter(results, "ttft", "first token, p50", _ms),
    )
    yield "Time to the first token by percentile", _percentiles(results, "ttft")
    yield "Time per token by percentile", _percentiles(results, "tpot")
    yield "Output tokens per second over time", _timelines(results)


def _ms(value: float) -> str:
    return duration(1000 * value)


def _scatter(results: Sequence[GenerationResult], key: str, name: str, format_value: Any) -> str:
    lines: list[Line] = []
    for number, result in enumerate(results):
        levels = [level for level in result.levels if key in level.figures]
        points = [(each.output_tokens_per_s, each.figures[key].at(50)) for each in levels]
        tooltips = [
            f"{level.name}: {rate(x)} tokens/s, {name} {format_value(y)}"
            for level, (x, y) in zip(levels, points, strict=True)
        ]
        lines.append(Line(_series(result, results) or result.model, number, points, tooltips))
    return _chart(lines, linear_axis("tokens/s", _most(lines, 0), rate), name, format_value)


def _percentiles(results: Sequence[GenerationResult], key: str) -> str:
    lines: list[Line] = []
    for result in results:
        for level in result.levels:
            if key in level.figures:
                figure = level.figures[key]
                points = [(float(p[1:]), value) for p, value in figure.percentiles.items()]
                tooltips = [f"{level.name}: {x:g} % within {_ms(y)}" for x, y in points]
                name = f"{_series(result, results)}{level.name}"
                lines.append(Line(name, len(lines), points, tooltips))
    return _chart(lines, percentile_axis("percentile", 99), "ms", _ms)


def _timelines(results: Sequence[GenerationResult]) -> str:
    lines: list[Line] = []
    for result in results:
        for level in result.levels:
            tooltips = [f"{level.name}, {x:.1f} s: {rate(y)} tokens/s" for x, y in level.timeline]
            name = f"{_series(result, results)}{level.name}"
            lines.append(Line(name, len(lines), level.timeline, tooltips))
    across = linear_axis("seconds", _most(lines, 0), rate)
    return _chart(lines, across, "tokens/s", rate)


def _chart(lines: Sequence[Line], across: Axis, name: str, format_value: Any) -> str:
    if not any(line.points for line in lines):
        return "<p>The responses were no streams, or they were empty.</p>"
    return line_chart(lines, across, linear_axis(name, _most(lines, 1), format_value))


def _most(lines: Sequence[Line], dimension: int) -> float:
    return max((point[dimension] for line in lines for point in line.points), default=0.0)


def _section(result: GenerationResult, results: Sequence[GenerationResult]) -> str:
    columns = ["load", "requests/s", "tokens/s", "goodput/s", "failed"]
    columns += [f"{title} {p}" for title in _TITLES.values() for p in ("mean", "p50", "p99")]
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    rows = "".join(_row(level) for level in result.levels)
    name = _series(result, results).removesuffix(", ") or "Figures"
    lists = "".join(
        f"<h3>{escape(level.name)}</h3><ul>"
        + "".join(f"<li>{escape(text.strip())}</li>" for text in list(_lines(level))[1:])
        + "</ul>"
        for level in result.levels
    )
    return (
        f"<h2>{escape(name)}</h2><p>started {escape(result.started)} with {escape(result.tool)}</p>"
        f"<pre>{escape(result.command)}</pre>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{lists}"
    )


def _row(level: LevelFigures) -> str:
    cells = [
        level.name, rate(level.requests_per_s), rate(level.output_tokens_per_s),
        "" if level.goodput is None else rate(level.goodput), f"{level.failed:,}",
    ]  # fmt: skip
    for key in _TITLES:
        figure = level.figures.get(key)
        values = (figure.avg, figure.at(50), figure.at(99)) if figure is not None else ()
        cells += [_ms(value) for value in values] or [""] * 3
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
