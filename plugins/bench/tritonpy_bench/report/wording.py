"""Human-readable text for durations, rates and levels."""

from __future__ import annotations

from tritonpy_bench.report.result import LevelResult

LEVEL = {
    "concurrency": "concurrency",
    "request_rate": "requests/s",
    "request_intervals": "intervals",
}


def duration(microseconds: float) -> str:
    """Return a duration with three significant digits: `85.3 us`, `1.24 ms`, `2.00 s`."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{_three_digits(microseconds / size)} {unit}"
    return f"{_three_digits(microseconds)} us"


def rate(per_s: float) -> str:
    """Return a rate: `12,345`, `98.7`."""
    return f"{per_s:,.0f}" if per_s >= 1000 else _three_digits(per_s)


def level_name(result: LevelResult) -> str:
    """Return `concurrency 8`, `200 requests/s`, `request intervals`."""
    if result.mode == "concurrency":
        return f"concurrency {result.level:g}"
    return f"{result.level:g} requests/s" if result.mode == "request_rate" else "request intervals"


def verdict(result: LevelResult) -> str:
    """Return how the measurement ended, such as "stable"."""
    if not result.requests:
        return "every request failed" if result.failed else "no request finished"
    if result.interrupted:
        return "interrupted"
    if result.counted:
        return "fixed number of requests"
    return "stable" if result.stable else f"not stable in {windows(result)}"


def windows(result: LevelResult) -> str:
    """Return the number of windows as text."""
    return f"{result.windows} window{'' if result.windows == 1 else 's'}"


def _three_digits(value: float) -> str:
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
