"""Arrival times of an open loop, in ns after its start, independent of the server."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import count, cycle, islice
from pathlib import Path

from tritonpy_load_generator.options import BadUsage


def constant_arrivals(rate: float) -> Iterator[int]:
    """Yield equally spaced arrivals: request n at n / `rate` seconds, without growing errors."""
    return (int(number * 1e9 / rate) for number in count())


def poisson_arrivals(rate: float, seed: int) -> Iterator[int]:
    """Yield Poisson arrivals, `rate` per second on average. Equal seeds give equal arrivals."""
    rng = random.Random(seed)  # noqa: S311  not for security
    at = 0.0
    while True:
        at += rng.expovariate(rate)
        yield int(at * 1e9)


def spaced_arrivals(intervals_us: Sequence[int]) -> Iterator[int]:
    """Yield arrivals with these intervals (us), repeated endlessly."""
    at = 0
    for interval in cycle(intervals_us):
        yield at
        at += interval * 1000


def client_arrivals(arrivals: Iterator[int], client_index: int, client_count: int) -> Iterator[int]:
    """Yield a client process's share of the arrivals; each belongs to exactly one client."""
    return islice(arrivals, client_index, None, client_count)


def read_intervals(path: Path) -> list[int]:
    """Read a file with one interval in microseconds per line. Raises BadUsage."""
    try:
        intervals = [int(line) for line in path.read_text(encoding="utf-8").split()]
    except (OSError, ValueError) as error:
        raise BadUsage(f"--request-intervals {path}: {error}") from error
    if not intervals or min(intervals) < 0 or not any(intervals):
        raise BadUsage(
            f"--request-intervals {path}: expected intervals of at least 0, not all of them 0"
        )
    return intervals
