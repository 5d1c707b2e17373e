"""Line charts and bars as SVG text. Coordinates are in pixels of a fixed drawing that the browser scales."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

import msgspec

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 70, 28, 14, 46
_TICKS = 5


class Line(msgspec.Struct, frozen=True):
    """Points joined by a line; `series` chooses the colour, `dashed` tells lines of one colour apart. `told` is shown for each point."""

    name: str
    series: int
    points: Sequence[tuple[float, float]]
    told: Sequence[str]
    dashed: bool = False


class Axis(msgspec.Struct, frozen=True):
    """A name, where values lie between 0 and 1, and the values that are marked with their texts."""

    name: str
    place: Callable[[float], float]
    ticks: Sequence[tuple[float, str]]


def linear(name: str, most: float, show: Callable[[float], str]) -> Axis:
    """Return an axis from 0 to a round number not below `most`."""
    step = nice_step(most / _TICKS) if most > 0 else 1.0
    top = step * max(math.ceil(most / step - 1e-9), 1)
    ticks = [(step * number, show(step * number)) for number in range(round(top / step) + 1)]
    return Axis(name, lambda value: value / top, ticks)


def nice_step(least: float) -> float:
    """Return the least of 1, 2, 5, 10, … (and their tenths) that is not below `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def nines(name: str, most: float) -> Axis:
    """Return an axis of percentiles on which every further nine takes as much room, up to `most` percent."""
    marks = [0, 50, 90, 99, 99.9, 99.99]
    kept = [mark for mark in marks if mark <= most]
    scale = _nine(most) or 1.0
    return Axis(name, lambda percent: _nine(min(percent, most)) / scale, [(mark, f"{mark:g}") for mark in kept])


def chart(lines: Sequence[Line], across: Axis, up: Axis) -> str:
    """Draw lines with their points, axes and a legend."""
    parts = [*_grid(across, up), *(part for line in lines for part in _line(line, across, up))]
    drawing = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(parts)}</svg>'
    legend = "".join(
        f'<span class="s{line.series % 8}{" dashed" if line.dashed else ""}"><i></i>{escape(line.name)}</span>'
        for line in lines
    )
    return f'{drawing}<p class="legend">{legend}</p>'


def stacked(bars: Sequence[tuple[str, Sequence[tuple[str, float, str]]]]) -> str:
    """Draw a horizontal bar per row, of pieces with a name, a size and a text that is shown for it."""
    most = max((sum(size for _, size, _ in pieces) for _, pieces in bars), default=0.0) or 1.0
    names = list(dict.fromkeys(name for _, pieces in bars for name, _, _ in pieces))
    rows = []
    for number, (label, pieces) in enumerate(bars):
        top, at = 6 + number * 26, 150.0
        rows.append(f'<text x="142" y="{top + 14}" class="end">{escape(label)}</text>')
        for name, size, told in pieces:
            width = size / most * (WIDTH - 166)
            colour = names.index(name) % 8
            rows.append(
                f'<rect class="s{colour}" x="{at:.1f}" y="{top}" width="{width:.1f}" height="20"><title>{escape(told)}</title></rect>'
            )
            at += width
    legend = "".join(f'<span class="s{number % 8}"><i></i>{escape(name)}</span>' for number, name in enumerate(names))
    height = 12 + len(bars) * 26
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img">{"".join(rows)}</svg><p class="legend">{legend}</p>'


def _nine(percent: float) -> float:
    return -math.log10(max(1 - percent / 100, 1e-6))


def _x(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _grid(across: Axis, up: Axis) -> list[str]:
    parts = []
    for value, text in across.ticks:
        x = _x(across.place(value))
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" class="middle">{escape(text)}</text>')
    for value, text in up.ticks:
        y = _y(up.place(value))
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" class="end">{escape(text)}</text>')
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" class="middle name">{escape(across.name)}</text>'
    )
    parts.append(
        f'<text transform="translate(12 {(TOP + HEIGHT - BOTTOM) / 2:.0f}) rotate(-90)" class="middle name">{escape(up.name)}</text>'
    )
    return parts


def _line(line: Line, across: Axis, up: Axis) -> list[str]:
    places = [(_x(across.place(x)), _y(up.place(y))) for x, y in line.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    kind = f"s{line.series % 8}{' dashed' if line.dashed else ''}"
    parts = [f'<polyline class="{kind}" points="{path}"/>']
    for (x, y), told in zip(places, line.told, strict=True):
        parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{escape(told)}</title></circle>')
    return parts
