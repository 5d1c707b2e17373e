"""When a window of measurement ends, and when a level has been measured enough."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tritonpy_bench.figures.snapshot import Snapshot
from tritonpy_bench.figures.stability import stable, window
from tritonpy_bench.options import BenchOptions

LOOK_S = 0.5
COUNTING_LOOK_S = 0.1  # where the last request ends a level
_MOST_INTERVALS = 10


class Plan(msgspec.Struct, frozen=True):
    """How often is looked within a window, and how long it is at least (s)."""

    looks: int
    seconds: float

    @property
    def look_s(self) -> float:
        """Seconds from one look to the next."""
        return self.seconds / self.looks


def plan(options: BenchOptions) -> Plan:
    """Return the plan of every window: about two looks a second, or ten where the number of requests is given."""
    seconds = options.measurement_interval / 1e3
    return Plan(max(round(seconds / (COUNTING_LOOK_S if options.request_count else LOOK_S)), 1), seconds)


def window_over(options: BenchOptions, looks: Sequence[Snapshot]) -> bool:
    """Whether a window that was looked at so often is whole.

    A window of counted requests is whole when the interval is over and so many were answered, or after ten intervals; with a number of
    requests to make, when all of them ended.
    """
    if looks[-1].finished:
        return True
    if options.request_count:
        return False
    wanted = plan(options).looks
    if len(looks) < wanted:
        return False
    if options.measurement_mode == "time_windows":
        return True
    answered = sum(look.succeeded + look.failed for look in looks)
    return answered >= options.measurement_request_count or len(looks) >= wanted * _MOST_INTERVALS


def level_over(options: BenchOptions, windows: Sequence[Snapshot]) -> bool:
    """Whether a level needs no further window: stable, tried often enough, all requests made, or nothing but errors."""
    last = windows[-1]
    return (
        last.finished
        or len(windows) >= options.max_trials
        or (last.failed > 0 and last.succeeded == 0)
        or is_stable(options, windows)
    )


def is_stable(options: BenchOptions, windows: Sequence[Snapshot]) -> bool:
    """Whether the last windows agree."""
    return stable([window(each, options.percentile) for each in windows], options.stability_percentage)
