"""Counts what was refused, and logs it without letting whoever is refused fill the log."""

from __future__ import annotations

import logging
from collections.abc import Callable

from tritonpy.access.rationed_log import RationedLog
from tritonpy.api.authenticator import Verb
from tritonpy.clock import now_ns
from tritonpy.custom_metrics import MetricKind, ModelMetrics

METRIC = "tritonpy_denied_requests"
UNAUTHENTICATED, FORBIDDEN = "unauthenticated", "permission_denied"
_LONGEST_NAME = 120


class Denials:
    """One counter per reason and verb, and lines in a rationed log."""

    def __init__(self, metrics: ModelMetrics, log: logging.Logger, clock: Callable[[], int] = now_ns) -> None:
        family = metrics.family(METRIC, "Number of requests that were denied", MetricKind.COUNTER)
        self._counters = {
            (reason, verb): family.metric({"reason": reason, "verb": verb.value})
            for reason in (UNAUTHENTICATED, FORBIDDEN)
            for verb in Verb
        }
        self._log = RationedLog(log, clock)

    def note(self, reason: str, verb: Verb, model: str, principal: str = "") -> None:
        """Take note of one; `principal` is the caller's name, empty for an unknown one. Never give it a credential."""
        self._counters[reason, verb].increment(1)
        who = f"'{principal[:_LONGEST_NAME]}'" if principal else "an unknown caller"
        what = f"model '{model[:_LONGEST_NAME]}'" if model else "the server"
        self._log.warn(f"denied: {who} asked to {verb.value} {what}")

    def failed(self, authenticator: str, error: Exception) -> None:
        """Take note of an authenticator that raised; what it says may quote the credential, so that only the error's type is told."""
        self._log.warn(f"authenticator '{authenticator}' failed, its answer counts as no: {type(error).__name__}")
