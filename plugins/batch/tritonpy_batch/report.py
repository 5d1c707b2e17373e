"""The report of a job as one HTML file, with a chart of the rate over time."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import jinja2

from tritonpy_batch.summary import JobSummary, RateSample, size_text

_WIDTH, _HEIGHT = 720, 180
_TEMPLATE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ summary.model }}: batch</title>
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } th, td { text-align: left; padding: .2rem 1.2rem .2rem 0; }
td { font-variant-numeric: tabular-nums; } svg { width: 100%; height: auto; }
polyline { fill: none; stroke: #2563eb; stroke-width: 2; }
svg text { font-size: 12px; fill: currentColor; }
.axis { stroke: currentColor; opacity: .4; } code { overflow-wrap: anywhere; }
</style></head><body>
<h1>{{ summary.model }} {{ summary.version }}</h1>
<table>
{% for name, value in facts %}<tr><th scope="row">{{ name }}</th><td>{{ value }}</td></tr>
{% endfor %}</table>
<h2>Rows per second</h2>
{% if points %}<svg viewBox="0 0 {{ width }} {{ height + 40 }}" role="img"
aria-label="Rows per second over time">
<line class="axis" x1="0" y1="{{ height }}" x2="{{ width }}" y2="{{ height }}"/>
<polyline points="{{ points }}"/>
<text x="0" y="12">{{ highest }}/s</text>
<text x="0" y="{{ height + 20 }}">0 s</text>
<text x="{{ width }}" y="{{ height + 20 }}" text-anchor="end">{{ seconds }} s</text>
</svg>{% else %}<p>The run was too short for a chart.</p>{% endif %}
{% if summary.first_errors %}<h2>First errors</h2>
<ul>{% for text in summary.first_errors %}<li>{{ text }}</li>{% endfor %}</ul>{% endif %}
<h2>Command</h2><p><code>{{ summary.command }}</code></p>
</body></html>
"""


def report_html(summary: JobSummary) -> str:
    """Return the report."""
    progress = summary.progress
    rates = _rates(summary.samples)
    highest = max((rate for _, rate in rates), default=0.0)
    last = rates[-1][0] if rates else 0.0
    points = " ".join(
        f"{seconds / last * _WIDTH:.1f},{_HEIGHT - rate / highest * (_HEIGHT - 20):.1f}"
        for seconds, rate in rates
    ) if highest and last and len(rates) > 1 else ""  # fmt: skip
    facts = [
        ("Output", summary.output),
        ("Rows", f"{summary.rows:,} in {len(summary.parts):,} parts"),
        ("Size", size_text(sum(part.size for part in summary.parts))),
        ("Rows with an error", f"{summary.errors:,}"),
        ("This run", f"{progress.rows:,} rows in {progress.seconds:.1f} s"),
        ("Rate", f"{progress.rate:,.0f} rows/s, {size_text(progress.bytes_rate)}/s"),
        ("Batches", f"{progress.batches:,}, {progress.fill:.0%} full"),
        ("Requests in flight", str(progress.in_flight)),
        ("Instances busy", f"{progress.busy:.0%}" if progress.busy else "unknown"),
        ("Parts of earlier runs", f"{summary.resumed:,}"),
    ]
    template = jinja2.Environment(autoescape=True).from_string(_TEMPLATE)
    return template.render(
        summary=summary, facts=facts, points=points, width=_WIDTH, height=_HEIGHT,
        highest=f"{highest:,.0f}", seconds=f"{last:.0f}",
    )  # fmt: skip


def write_report(file: Path, summary: JobSummary) -> None:
    """Write the report. Raises OSError."""
    file.write_text(report_html(summary), encoding="utf-8")


def _rates(samples: list[RateSample]) -> list[tuple[float, float]]:
    """Return (seconds, rows per second) between consecutive samples."""
    rates = []
    for before, after in pairwise(samples):
        elapsed = after.seconds - before.seconds
        if elapsed > 0:
            rates.append((after.seconds, (after.rows - before.rows) / elapsed))
    return rates
