"""Counting and rate-limited logging of denied requests."""

from __future__ import annotations

import logging
from collections.abc import Callable

from tritonpy.api.authenticator import Verb
from tritonpy_metrics import MetricKind, ModelMetrics
from tritonpy_types.clock import now_ns

METRIC = "tritonpy_denied_requests"
UNAUTHENTICATED, FORBIDDEN = "unauthenticated", "permission_denied"
_MAX_NAME_LENGTH = 120


_BURST = 10  # lines
_REFILL_NS = 1_000_000_000  # per line


class RateLimitedLog:
    """A log of up to ten lines at once and one more per second. `clock` returns nanoseconds.

    A line after suppressed ones includes their number.
    """

    def __init__(self, log: logging.Logger, clock: Callable[[], int] = now_ns) -> None:
        self._log = log
        self._clock = clock
        self._tokens = float(_BURST)
        self._updated_ns = clock()
        self._suppressed = 0

    def warn(self, text: str) -> None:
        """Log `text`, or count it as suppressed."""
        now = self._clock()
        self._tokens = min(_BURST, self._tokens + (now - self._updated_ns) / _REFILL_NS)
        self._updated_ns = now
        if self._tokens < 1:
            self._suppressed += 1
            return
        self._tokens -= 1
        more = f" ({self._suppressed} similar lines suppressed)" if self._suppressed else ""
        self._suppressed = 0
        self._log.warning("%s%s", text, more)


class Denials:
    """One counter per reason and verb, and rate-limited log lines."""

    def __init__(
        self, metrics: ModelMetrics, log: logging.Logger, clock: Callable[[], int] = now_ns
    ) -> None:
        family = metrics.family(METRIC, "Number of requests that were denied", MetricKind.COUNTER)
        self._counters = {
            (reason, verb): family.metric({"reason": reason, "verb": verb.value})
            for reason in (UNAUTHENTICATED, FORBIDDEN)
            for verb in Verb
        }
        self._log = RateLimitedLog(log, clock)

    def note(self, reason: str, verb: Verb, model: str, principal: str = "") -> None:
        """Count and log a denial. `principal` is the principal's name, empty for an unknown one.

        Never pass a credential.
        """
        self._counters[reason, verb].increment(1)
        name = f"'{principal[:_MAX_NAME_LENGTH]}'" if principal else "an unknown principal"
        target = f"model '{model[:_MAX_NAME_LENGTH]}'" if model else "the server"
        self._log.warn(f"denied: {name} may not {verb.value} {target}")

    def failed(self, authenticator: str, error: Exception) -> None:
        """Log that an authenticator raised an exception, with its type only.

        The text of the exception may quote the credential.
        """
        self._log.warn(
            f"authenticator '{authenticator}' failed, access is denied: {type(error).__name__}"
        )
