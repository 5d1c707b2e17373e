"""Checks of a canary's limits. Pure functions."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from tritonpy_metrics.confidence_bounds import lower_bound, rate_exceeds, upper_bound
from tritonpy_traffic.latencies import Latencies
from tritonpy_traffic.spec import CanaryLimits

_TESTS = 4  # tests that share `alpha`


@dataclass(slots=True)
class ResponseStats:
    """Responses of one target: number, failures and latencies of successful ones."""

    responses: int = 0
    failures: int = 0
    latencies: Latencies = field(default_factory=Latencies)

    def add(self, ns: int, failed: bool) -> None:
        """Record a response."""
        self.responses += 1
        if failed:
            self.failures += 1
        else:
            self.latencies.add(ns)


def find_violation(
    limits: CanaryLimits, canary: ResponseStats, primary: ResponseStats, alpha: float
) -> str:
    """Return a description of a limit that the canary exceeds with certainty, or "".

    The probability of a false alarm is at most `alpha`, over all calls for one canary.
    """
    each = alpha / _TESTS
    return (
        _check_error_rate(limits, canary, each)
        or _check_error_rate_over_primary(limits, canary, primary, each)
        or _check_latency(limits, canary, each)
        or _check_latency_over_primary(limits, canary, primary, each)
    )


def _check_error_rate(limits: CanaryLimits, canary: ResponseStats, alpha: float) -> str:
    limit = limits.error_rate
    if limit is None or not rate_exceeds(canary.failures, canary.responses, limit, alpha):
        return ""
    return f"error rate: {_describe_failures(canary)}, the limit is {limit:.3g}"


def _check_error_rate_over_primary(
    limits: CanaryLimits, canary: ResponseStats, primary: ResponseStats, alpha: float
) -> str:
    margin = limits.error_rate_over_primary
    if margin is None or not canary.failures or not primary.responses:
        return ""
    at_least = lower_bound(canary.failures, canary.responses, alpha / 2)
    at_most = upper_bound(primary.failures, primary.responses, alpha / 2)
    if at_least <= at_most + margin:
        return ""
    return (
        f"error rate: {_describe_failures(canary)}, of the primary "
        f"{_describe_failures(primary)}, {margin:.3g} more is the limit"
    )


def _check_latency(limits: CanaryLimits, canary: ResponseStats, alpha: float) -> str:
    limit, times = limits.latency_ms, canary.latencies
    if limit is None or not rate_exceeds(
        times.above(limit * 1e6), times.count, 1 - limits.latency_quantile, alpha
    ):
        return ""
    return f"latency: {_describe_latency(canary, limits)}, the limit is {limit:.3g} ms"


def _check_latency_over_primary(
    limits: CanaryLimits, canary: ResponseStats, primary: ResponseStats, alpha: float
) -> str:
    factor, times = limits.latency_over_primary, canary.latencies
    if factor is None or not times.count:
        return ""
    certain = _quantile_upper_bound(primary.latencies, limits.latency_quantile, alpha / 2)
    slow = times.above(factor * certain) if certain else 0
    if not rate_exceeds(slow, times.count, 1 - limits.latency_quantile, alpha / 2):
        return ""
    return (
        f"latency: {_describe_latency(canary, limits)}, of the primary "
        f"{_describe_latency(primary, limits)}, {factor:.3g} times that is the limit"
    )


def _quantile_upper_bound(times: Latencies, share: float, alpha: float) -> int:
    """Return an upper confidence bound of the quantile, in ns; 0 with too few responses."""
    if not rate_exceeds(times.count, times.count, share, alpha):
        return 0
    bounds = times.bounds()
    return bounds[
        bisect_left(bounds, True, key=lambda pair: rate_exceeds(pair[1], times.count, share, alpha))
    ][0]


def _describe_failures(sample: ResponseStats) -> str:
    return f"{sample.failures} of {sample.responses} responses failed"


def _describe_latency(sample: ResponseStats, limits: CanaryLimits) -> str:
    quantile = sample.latencies.quantile(limits.latency_quantile) / 1e6
    return f"{quantile:.3g} ms at quantile {limits.latency_quantile:g}"
