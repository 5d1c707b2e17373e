"""Counting and rate-limited logging of calls to restricted APIs without the secret header."""

from __future__ import annotations

import logging
from collections.abc import Callable

from tritonpy.access.rate_limited_log import RateLimitedLog
from tritonpy.access.restriction import ApiCategory
from tritonpy.clock import now_ns
from tritonpy.custom_metrics import MetricKind, ModelMetrics

METRIC = "tritonpy_restricted_requests"


class RestrictionDenials:
    """One counter per category of `protocol` ("http" or "grpc"), and rate-limited log lines.

    The header's value is never logged.
    """

    def __init__(
        self, metrics: ModelMetrics, protocol: str, log: logging.Logger, clock: Callable[[], int] = now_ns
    ) -> None:
        family = metrics.family(METRIC, "Number of calls of restricted APIs without their header", MetricKind.COUNTER)
        self._counters = {
            category: family.metric({"protocol": protocol, "api": category.value}) for category in ApiCategory
        }
        self._protocol = protocol
        self._log = RateLimitedLog(log, clock)

    def note(self, category: ApiCategory) -> None:
        """Count and log one denial."""
        self._counters[category].increment(1)
        self._log.warn(f"refused: {self._protocol} call to the restricted API '{category.value}' without its header")
