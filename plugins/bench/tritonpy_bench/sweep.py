"""Which levels of load are measured, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class LoadRange(msgspec.Struct, frozen=True):
    """Levels from `start` by `step` up to `end`; `end` 0 goes on until the latency threshold is missed."""

    start: float
    end: float
    step: float = 1.0


class Outcome(msgspec.Struct, frozen=True):
    """A level that was measured, and whether it kept the latency threshold."""

    level: float
    kept: bool


def parse_range(text: str) -> LoadRange:
    """Read `start[:end[:step]]`; raises ValueError saying what is wrong."""
    numbers = [float(part) for part in text.split(":")]
    if not 1 <= len(numbers) <= 3:
        raise ValueError("expected start:end:step")
    start = numbers[0]
    end = numbers[1] if len(numbers) > 1 else start
    step = numbers[2] if len(numbers) > 2 else 1.0
    if start <= 0 or step <= 0:
        raise ValueError("start and step must be greater than 0")
    if end and end < start:
        raise ValueError("end must not be less than start")
    return LoadRange(start, end, step)


def next_level(levels: LoadRange, done: Sequence[Outcome], binary: bool = False) -> float | None:
    """Return the level to measure after those that are `done`, or None when the search is over."""
    if binary:
        return _bisected(levels, done)
    if not done:
        return levels.start
    if not done[-1].kept:
        return None
    following = levels.start + levels.step * len(done)  # multiplied, not added up: no error of rounding grows
    return following if not levels.end or following <= levels.end * (1 + 1e-9) else None


def _bisected(levels: LoadRange, done: Sequence[Outcome]) -> float | None:
    """Look for the highest level that keeps the threshold: the ends first, then halves, on the grid of steps."""
    last = int((levels.end - levels.start) / levels.step + 1e-9)
    tried = {_place(levels, outcome.level): outcome.kept for outcome in done}
    if 0 not in tried:
        return levels.start
    if not tried[0]:
        return None
    if last and last not in tried:
        return levels.start + last * levels.step
    low = max(place for place, kept in tried.items() if kept)
    high = min((place for place, kept in tried.items() if not kept), default=last + 1)
    if high - low <= 1:
        return None
    return levels.start + (low + high) // 2 * levels.step


def _place(levels: LoadRange, level: float) -> int:
    return round((level - levels.start) / levels.step)
