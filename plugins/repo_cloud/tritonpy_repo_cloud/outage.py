"""Pure state of a store outage: when to try a failed store again."""

from __future__ import annotations

from tritonpy_repo_cloud.backoff import RetryBackoff
from tritonpy_repo_cloud.store_errors import StoreError


class StoreOutage:
    """Counts consecutive failures and computes the time of the next attempt, in seconds."""

    def __init__(self, pauses: RetryBackoff) -> None:
        self._backoff = pauses
        self._failures = 0
        self._until = float("-inf")
        self.failure: StoreError | None = None

    def is_active(self, now: float) -> bool:
        """Return whether the store must not be tried yet."""
        return self.failure is not None and now < self._until

    def record_failure(self, failure: StoreError, now: float) -> bool:
        """Record a failure; return whether it differs from the previous one."""
        news = self.failure is None or self.failure.message != failure.message
        self._failures += 1
        self._until = now + self._backoff.delay_s(self._failures)
        self.failure = failure
        return news

    def record_success(self) -> bool:
        """Record a success; return whether it ended an outage."""
        news = self.failure is not None
        self._failures, self._until, self.failure = 0, float("-inf"), None
        return news
