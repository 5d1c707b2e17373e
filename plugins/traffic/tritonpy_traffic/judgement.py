"""Whether a canary is worse than it may be. Pure: counts in, a reason out."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from tritonpy_traffic.evidence import exceeds, highest_rate, lowest_rate
from tritonpy_traffic.latencies import Latencies
from tritonpy_traffic.spec import Limits

_TESTS = 4  # that share the doubt


@dataclass(slots=True)
class Sample:
    """The answers of one target: how many, how many of them failed, and how long the others took."""

    answers: int = 0
    failures: int = 0
    latencies: Latencies = field(default_factory=Latencies)

    def add(self, ns: int, failed: bool) -> None:
        """Take note of an answer."""
        self.answers += 1
        if failed:
            self.failures += 1
        else:
            self.latencies.add(ns)


def judge(limits: Limits, canary: Sample, primary: Sample, doubt: float) -> str:
    """Return which limit the canary has certainly passed, as text, empty where none; for a good canary that is ever wrong with probability `doubt`."""
    each = doubt / _TESTS
    return (
        _too_many_errors(limits, canary, each)
        or _more_errors(limits, canary, primary, each)
        or _too_slow(limits, canary, each)
        or _slower(limits, canary, primary, each)
    )


def _too_many_errors(limits: Limits, canary: Sample, doubt: float) -> str:
    limit = limits.error_rate
    if limit is None or not exceeds(canary.failures, canary.answers, limit, doubt):
        return ""
    return f"error rate: {_failed(canary)}, the limit is {limit:.3g}"


def _more_errors(limits: Limits, canary: Sample, primary: Sample, doubt: float) -> str:
    margin = limits.error_rate_over_primary
    if margin is None or not canary.failures or not primary.answers:
        return ""
    at_least = lowest_rate(canary.failures, canary.answers, doubt / 2)
    at_most = highest_rate(primary.failures, primary.answers, doubt / 2)
    if at_least <= at_most + margin:
        return ""
    return f"error rate: {_failed(canary)}, of the primary {_failed(primary)}, {margin:.3g} more is the limit"


def _too_slow(limits: Limits, canary: Sample, doubt: float) -> str:
    limit, times = limits.latency_ms, canary.latencies
    if limit is None or not exceeds(times.above(limit * 1e6), times.count, 1 - limits.latency_quantile, doubt):
        return ""
    return f"latency: {_slow(canary, limits)}, the limit is {limit:.3g} ms"


def _slower(limits: Limits, canary: Sample, primary: Sample, doubt: float) -> str:
    factor, times = limits.latency_over_primary, canary.latencies
    if factor is None or not times.count:
        return ""
    certain = _certain_quantile(primary.latencies, limits.latency_quantile, doubt / 2)
    slow = times.above(factor * certain) if certain else 0
    if not exceeds(slow, times.count, 1 - limits.latency_quantile, doubt / 2):
        return ""
    return f"latency: {_slow(canary, limits)}, of the primary {_slow(primary, limits)}, {factor:.3g} times that is the limit"


def _certain_quantile(times: Latencies, share: float, doubt: float) -> int:
    """Return a time, in ns, that is certainly not less than the true quantile; 0 while there are too few answers to know one."""
    if not exceeds(times.count, times.count, share, doubt):
        return 0
    bounds = times.bounds()
    return bounds[bisect_left(bounds, True, key=lambda pair: exceeds(pair[1], times.count, share, doubt))][0]


def _failed(sample: Sample) -> str:
    return f"{sample.failures} of {sample.answers} answers failed"


def _slow(sample: Sample, limits: Limits) -> str:
    quantile = sample.latencies.quantile(limits.latency_quantile) / 1e6
    return f"{quantile:.3g} ms at quantile {limits.latency_quantile:g}"
