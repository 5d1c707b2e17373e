"""Triton's restricted APIs: groups of calls that require a header with a secret value."""

from __future__ import annotations

import enum
import hmac
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated

from msgspec import Meta

from tritonpy.auth.denials import RateLimitedLog
from tritonpy_config.options import Options
from tritonpy_metrics import MetricKind, ModelMetrics
from tritonpy_types.clock import now_ns


class ApiCategory(enum.Enum):
    """Triton's categories of calls, and `operations` for those that only this server has."""

    HEALTH = "health"
    METADATA = "metadata"
    INFERENCE = "inference"
    SHARED_MEMORY = "shared-memory"
    MODEL_CONFIG = "model-config"
    MODEL_REPOSITORY = "model-repository"
    STATISTICS = "statistics"
    TRACE = "trace"
    LOGGING = "logging"
    OPERATIONS = "operations"


class Restriction(Options, frozen=True):
    """An option of a frontend: calls of `apis` require the header `key` with the value `value`."""

    apis: Annotated[tuple[ApiCategory, ...], Meta(min_length=1, description="Categories of calls.")]
    key: Annotated[str, Meta(min_length=1, description="Name of the header; case is ignored.")]
    value: Annotated[str, Meta(min_length=1, description="Required value of the header.")]


class Restrictions:
    """The restrictions of one frontend by category.

    `prefix` precedes every header's name. `note` is called for each refusal.
    """

    def __init__(
        self,
        given: Sequence[Restriction],
        prefix: str = "",
        note: Callable[[ApiCategory], None] | None = None,
    ) -> None:
        self._note = note
        self._expected = {
            category: (prefix + one.key, one.value.encode())
            for one in given
            for category in one.apis
        }

    def missing(self, category: ApiCategory, headers: Iterable[tuple[str, str]]) -> str | None:
        """Return the name of the missing header, or None if the call may proceed.

        The first value of a repeated header counts.
        """
        expected = self._expected.get(category)
        if expected is None:
            return None
        name, value = expected
        lowered = name.lower()
        given = next((text for key, text in headers if key.lower() == lowered), "")
        if hmac.compare_digest(given.encode("utf-8", "surrogateescape"), value):
            return None
        if self._note is not None:
            self._note(category)
        return name


def check_restrictions(given: Sequence[Restriction], what: str) -> None:
    """Raise ValueError with Triton's text if a category is restricted twice.

    `what` is "api" or "protocol".
    """
    seen: set[ApiCategory] = set()
    for category in [category for one in given for category in one.apis]:
        if category in seen:
            raise ValueError(
                f"restricted {what} '{category.value}' can not be specified in multiple config "
                "groups"
            )
        seen.add(category)


METRIC = "tritonpy_restricted_requests"


class RestrictionDenials:
    """One counter per category of `protocol` ("http" or "grpc"), and rate-limited log lines.

    The header's value is never logged.
    """

    def __init__(
        self,
        metrics: ModelMetrics,
        protocol: str,
        log: logging.Logger,
        clock: Callable[[], int] = now_ns,
    ) -> None:
        family = metrics.family(
            METRIC, "Number of calls of restricted APIs without their header", MetricKind.COUNTER
        )
        self._counters = {
            category: family.metric({"protocol": protocol, "api": category.value})
            for category in ApiCategory
        }
        self._protocol = protocol
        self._log = RateLimitedLog(log, clock)

    def note(self, category: ApiCategory) -> None:
        """Count and log one denial."""
        self._counters[category].increment(1)
        self._log.warn(
            f"refused: {self._protocol} call to the restricted API '{category.value}' without "
            "its header"
        )
