"""Stability of a measurement: whether the results of the last windows agree."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tritonpy_load_generator.figures.snapshot import Snapshot

AGREEING = 3
"""The number of windows that must agree; the result is computed from them."""


class Window(msgspec.Struct, frozen=True):
    """Successful requests per second, and the latency (ns) used for stability."""

    rate: float
    latency_ns: float


def window(snapshot: Snapshot, percentile: int | None) -> Window:
    """Return rate and latency of a window; `percentile` None selects the mean."""
    latency = snapshot.latency
    watched = latency.mean if percentile is None else latency.percentile(percentile)
    return Window(snapshot.succeeded / max(snapshot.seconds, 1e-9), watched)


def windows_agree(windows: Sequence[Window], percent: float) -> bool:
    """Return whether rate and latency of the last three windows differ by at most `percent`."""
    last = windows[-AGREEING:]
    if len(last) < AGREEING or any(each.rate <= 0 for each in last):
        return False
    return all(
        max(figures) <= min(figures) * (1 + percent / 100)
        for figures in ([each.rate for each in last], [each.latency_ns for each in last])
    )
