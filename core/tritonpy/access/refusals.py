"""Counts and logs the calls of restricted APIs that lacked the secret."""

from __future__ import annotations

import logging
from collections.abc import Callable

from tritonpy.access.rationed_log import RationedLog
from tritonpy.access.restriction import ApiCategory
from tritonpy.clock import now_ns
from tritonpy.custom_metrics import MetricKind, ModelMetrics

METRIC = "tritonpy_restricted_requests"


class Refusals:
    """One counter per category of `protocol`, "http" or "grpc", and lines in a rationed log; what the header said is told to nobody."""

    def __init__(
        self, metrics: ModelMetrics, protocol: str, log: logging.Logger, clock: Callable[[], int] = now_ns
    ) -> None:
        family = metrics.family(METRIC, "Number of calls of restricted APIs without their header", MetricKind.COUNTER)
        self._counters = {
            category: family.metric({"protocol": protocol, "api": category.value}) for category in ApiCategory
        }
        self._protocol = protocol
        self._log = RationedLog(log, clock)

    def note(self, category: ApiCategory) -> None:
        """Take note of one."""
        self._counters[category].increment(1)
        self._log.warn(
            f"refused: a call over {self._protocol} of the restricted API '{category.value}' without its header"
        )
