"""Selection of the levels of load to measure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class LoadRange(msgspec.Struct, frozen=True):
    """Levels from `start` to `end` by `step`; with `end` 0, until the threshold is exceeded."""

    start: float
    end: float
    step: float = 1.0


class Outcome(msgspec.Struct, frozen=True):
    """A measured level, and whether its latency was within the threshold."""

    level: float
    kept: bool


def parse_range(text: str) -> LoadRange:
    """Parse `start[:end[:step]]`. Raises ValueError with the reason."""
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
    """Return the next level to measure after `done`, or None if the sweep is complete."""
    if binary:
        return _bisect(levels, done)
    if not done:
        return levels.start
    if not done[-1].kept:
        return None
    following = levels.start + levels.step * len(
        done
    )  # multiplied, so that rounding errors do not add up
    return following if not levels.end or following <= levels.end * (1 + 1e-9) else None


def _bisect(levels: LoadRange, done: Sequence[Outcome]) -> float | None:
    """Search for the highest level within the threshold: both ends first, then bisect the steps."""
    last = int((levels.end - levels.start) / levels.step + 1e-9)
    tried = {_index(levels, outcome.level): outcome.kept for outcome in done}
    if 0 not in tried:
        return levels.start
    if not tried[0]:
        return None
    if last and last not in tried:
        return levels.start + last * levels.step
    low = max(index for index, kept in tried.items() if kept)
    high = min((index for index, kept in tried.items() if not kept), default=last + 1)
    if high - low <= 1:
        return None
    return levels.start + (low + high) // 2 * levels.step


def _index(levels: LoadRange, level: float) -> int:
    return round((level - levels.start) / levels.step)
