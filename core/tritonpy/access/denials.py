"""Counts what was refused, and logs it without letting whoever is refused fill the log."""

from __future__ import annotations

import logging
from collections.abc import Callable

from tritonpy.api.authenticator import Verb
from tritonpy.clock import now_ns
from tritonpy.custom_metrics import CustomMetrics, MetricKind, ModelMetrics

METRIC = "tritonpy_denied_requests"
UNAUTHENTICATED, FORBIDDEN = "unauthenticated", "permission_denied"
_BURST = 10  # lines
_REFILL_NS = 1_000_000_000  # per line
_LONGEST_NAME = 120


class Denials:
    """One counter per reason and verb. At most ten lines at once and one a second are logged; the next one tells how many are missing."""

    def __init__(self, metrics: CustomMetrics, log: logging.Logger, clock: Callable[[], int] = now_ns) -> None:
        family = ModelMetrics(metrics).family(METRIC, "Number of requests that were denied", MetricKind.COUNTER)
        self._counters = {
            (reason, verb): family.metric({"reason": reason, "verb": verb.value})
            for reason in (UNAUTHENTICATED, FORBIDDEN)
            for verb in Verb
        }
        self._log = log
        self._clock = clock
        self._tokens = float(_BURST)
        self._looked_ns = clock()
        self._unlogged = 0

    def note(self, reason: str, verb: Verb, model: str, principal: str = "") -> None:
        """Take note of one; `principal` is the caller's name, empty for an unknown one. Never give it a credential."""
        self._counters[reason, verb].increment(1)
        who = f"'{principal[:_LONGEST_NAME]}'" if principal else "an unknown caller"
        what = f"model '{model[:_LONGEST_NAME]}'" if model else "the server"
        self._tell(f"denied: {who} asked to {verb.value} {what}")

    def failed(self, authenticator: str, error: Exception) -> None:
        """Take note of an authenticator that raised; what it says may quote the credential, so that only the error's type is told."""
        self._tell(f"authenticator '{authenticator}' failed, its answer counts as no: {type(error).__name__}")

    def _tell(self, text: str) -> None:
        now = self._clock()
        self._tokens = min(_BURST, self._tokens + (now - self._looked_ns) / _REFILL_NS)
        self._looked_ns = now
        if self._tokens < 1:
            self._unlogged += 1
            return
        self._tokens -= 1
        more = f" ({self._unlogged} such lines before it are left out)" if self._unlogged else ""
        self._unlogged = 0
        self._log.warning("%s%s", text, more)
