"""End conditions of measurement windows and levels."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tritonpy_bench.options import BenchOptions
from tritonpy_bench.stability import window, windows_agree
from tritonpy_load_generator.figures.snapshot import Snapshot

SNAPSHOT_INTERVAL_S = 0.5
COUNTED_SNAPSHOT_INTERVAL_S = 0.1  # the last request ends a level
_MAX_INTERVALS = 10


class WindowPlan(msgspec.Struct, frozen=True):
    """Snapshots per window, and the minimum length of a window in seconds."""

    snapshots: int
    seconds: float

    @property
    def interval_s(self) -> float:
        """Seconds between snapshots."""
        return self.seconds / self.snapshots


def plan(options: BenchOptions) -> WindowPlan:
    """Return the plan of every window: two snapshots per second, or ten per request count."""
    seconds = options.measurement_interval / 1e3
    return WindowPlan(
        max(
            round(
                seconds
                / (COUNTED_SNAPSHOT_INTERVAL_S if options.request_count else SNAPSHOT_INTERVAL_S)
            ),
            1,
        ),
        seconds,
    )


def is_window_complete(options: BenchOptions, snapshots: Sequence[Snapshot]) -> bool:
    """Return whether a window with these snapshots is complete.

    With count_windows, it is complete after the interval if enough requests finished, or after ten
    intervals. With --request-count, it is complete when all requests have finished.
    """
    if snapshots[-1].finished:
        return True
    if options.request_count:
        return False
    snapshots_needed = plan(options).snapshots
    if len(snapshots) < snapshots_needed:
        return False
    if options.measurement_mode == "time_windows":
        return True
    finished_requests = sum(snapshot.succeeded + snapshot.failed for snapshot in snapshots)
    return (
        finished_requests >= options.measurement_request_count
        or len(snapshots) >= snapshots_needed * _MAX_INTERVALS
    )


def is_level_complete(options: BenchOptions, windows: Sequence[Snapshot]) -> bool:
    """Return whether a level needs no further window.

    It is complete if it is stable, reached the maximum of trials, sent all requests, or has only
    errors.
    """
    last = windows[-1]
    return (
        last.finished
        or len(windows) >= options.max_trials
        or (last.failed > 0 and last.succeeded == 0)
        or is_stable(options, windows)
    )


def is_stable(options: BenchOptions, windows: Sequence[Snapshot]) -> bool:
    """Return whether the last windows agree."""
    return windows_agree(
        [window(each, options.percentile) for each in windows], options.stability_percentage
    )
