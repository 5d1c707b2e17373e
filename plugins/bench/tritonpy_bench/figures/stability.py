"""When measuring may end: the last windows agree with each other."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tritonpy_bench.figures.snapshot import Snapshot

AGREEING = 3
"""How many windows must agree; a result is made of them."""


class Window(msgspec.Struct, frozen=True):
    """One measurement: requests per second that succeeded, and the latency (ns) that is watched."""

    rate: float
    latency_ns: float


def window(snapshot: Snapshot, percentile: int | None) -> Window:
    """Return the two figures of a window; `percentile` None watches the mean."""
    latency = snapshot.latency
    watched = latency.mean if percentile is None else latency.percentile(percentile)
    return Window(snapshot.succeeded / max(snapshot.seconds, 1e-9), watched)


def stable(windows: Sequence[Window], percent: float) -> bool:
    """Whether the last three windows differ by at most `percent` in rate and in latency: the greatest from the least."""
    last = windows[-AGREEING:]
    if len(last) < AGREEING or any(each.rate <= 0 for each in last):
        return False
    return all(
        max(figures) <= min(figures) * (1 + percent / 100)
        for figures in ([each.rate for each in last], [each.latency_ns for each in last])
    )
