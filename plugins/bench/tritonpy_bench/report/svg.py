"""Line and bar charts as SVG. Coordinates are in pixels of a fixed size that the browser scales."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

import msgspec

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 70, 28, 14, 46
_TICKS = 5


class Line(msgspec.Struct, frozen=True):
    """Points joined by a line, with a tooltip each; `series` selects the color."""

    name: str
    series: int
    points: Sequence[tuple[float, float]]
    tooltips: Sequence[str]
    dashed: bool = False


class Axis(msgspec.Struct, frozen=True):
    """An axis: `place` maps a value to 0..1; `ticks` are values with labels."""

    name: str
    place: Callable[[float], float]
    ticks: Sequence[tuple[float, str]]


def linear_axis(name: str, most: float, format_value: Callable[[float], str]) -> Axis:
    """Return an axis from 0 to a round number not below `most`."""
    step = nice_step(most / _TICKS) if most > 0 else 1.0
    top = step * max(math.ceil(most / step - 1e-9), 1)
    ticks = [
        (step * number, format_value(step * number)) for number in range(round(top / step) + 1)
    ]
    return Axis(name, lambda value: value / top, ticks)


def nice_step(least: float) -> float:
    """Return the smallest of …, 0.5, 1, 2, 5, 10, … that is not below `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def percentile_axis(name: str, most: float) -> Axis:
    """Return an axis of percentiles up to `most`, with equal distances from 90 to 99, to 99.9, …"""
    marks = [0, 50, 90, 99, 99.9, 99.99]
    ticks_in_range = [mark for mark in marks if mark <= most]
    scale = _count_nines(most) or 1.0
    return Axis(
        name,
        lambda percent: _count_nines(min(percent, most)) / scale,
        [(mark, f"{mark:g}") for mark in ticks_in_range],
    )


def line_chart(lines: Sequence[Line], across: Axis, up: Axis) -> str:
    """Draw lines with points, axes and a legend."""
    parts = [*_grid(across, up), *(part for line in lines for part in _line(line, across, up))]
    drawing = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(parts)}</svg>'
    legend = "".join(
        f'<span class="s{line.series % 8}{" dashed" if line.dashed else ""}">'
        f"<i></i>{escape(line.name)}</span>"
        for line in lines
    )
    return f'{drawing}<p class="legend">{legend}</p>'


def stacked_bars(bars: Sequence[tuple[str, Sequence[tuple[str, float, str]]]]) -> str:
    """Draw a horizontal bar per row; each piece has a name, a size and a tooltip."""
    most = max((sum(size for _, size, _ in pieces) for _, pieces in bars), default=0.0) or 1.0
    names = list(dict.fromkeys(name for _, pieces in bars for name, _, _ in pieces))
    rows = []
    for number, (label, pieces) in enumerate(bars):
        top, at = 6 + number * 26, 150.0
        rows.append(f'<text x="142" y="{top + 14}" class="end">{escape(label)}</text>')
        for name, size, tooltip in pieces:
            width = size / most * (WIDTH - 166)
            color = names.index(name) % 8
            rows.append(
                f'<rect class="s{color}" x="{at:.1f}" y="{top}" width="{width:.1f}" '
                f'height="20"><title>{escape(tooltip)}</title></rect>'
            )
            at += width
    legend = "".join(
        f'<span class="s{number % 8}"><i></i>{escape(name)}</span>'
        for number, name in enumerate(names)
    )
    height = 12 + len(bars) * 26
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img">{"".join(rows)}</svg><p '
        f'class="legend">{legend}</p>'
    )


def _count_nines(percent: float) -> float:
    return -math.log10(max(1 - percent / 100, 1e-6))


def _x(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _grid(across: Axis, up: Axis) -> list[str]:
    parts = []
    for value, text in across.ticks:
        x = _x(across.place(value))
        parts.append(
            f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        )
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" class="middle">{escape(text)}</text>'
        )
    for value, text in up.ticks:
        y = _y(up.place(value))
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" class="end">{escape(text)}</text>')
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" class="middle '
        f'name">{escape(across.name)}</text>'
    )
    parts.append(
        f'<text transform="translate(12 {(TOP + HEIGHT - BOTTOM) / 2:.0f}) rotate(-90)" '
        f'class="middle name">{escape(up.name)}</text>'
    )
    return parts


def _line(line: Line, across: Axis, up: Axis) -> list[str]:
    pixels = [(_x(across.place(x)), _y(up.place(y))) for x, y in line.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in pixels)
    kind = f"s{line.series % 8}{' dashed' if line.dashed else ''}"
    parts = [f'<polyline class="{kind}" points="{path}"/>']
    for (x, y), tooltip in zip(pixels, line.tooltips, strict=True):
        parts.append(
            f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" '
            f'r="3"><title>{escape(tooltip)}</title></circle>'
        )
    return parts
