"""When the requests of an open loop are meant to start, in ns after its beginning. Nothing here knows how the server does."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import count, cycle, islice
from pathlib import Path

from tritonpy_bench.options import BadUsage


def constant(rate: float) -> Iterator[int]:
    """Yield equal distances: request n starts n / `rate` seconds after the beginning, without error of rounding that grows."""
    return (int(number * 1e9 / rate) for number in count())


def poisson(rate: float, seed: int) -> Iterator[int]:
    """Yield arrivals that know nothing of each other, `rate` per second in the mean; the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311  nothing secret
    at = 0.0
    while True:
        at += chance.expovariate(rate)
        yield int(at * 1e9)


def spaced(intervals_us: Sequence[int]) -> Iterator[int]:
    """Yield arrivals with these distances (us), over and over."""
    at = 0
    for interval in cycle(intervals_us):
        yield at
        at += interval * 1000


def dealt(arrivals: Iterator[int], hand: int, hands: int) -> Iterator[int]:
    """Yield what one of several client processes takes of the arrivals: together they make them all, none twice."""
    return islice(arrivals, hand, None, hands)


def read_intervals(path: Path) -> list[int]:
    """Read a file with one distance in microseconds a line. Raises BadUsage."""
    try:
        intervals = [int(line) for line in path.read_text(encoding="utf-8").split()]
    except (OSError, ValueError) as error:
        raise BadUsage(f"--request-intervals {path}: {error}") from error
    if not intervals or min(intervals) < 0 or not any(intervals):
        raise BadUsage(f"--request-intervals {path}: expected at least one distance greater than 0, and none less")
    return intervals
