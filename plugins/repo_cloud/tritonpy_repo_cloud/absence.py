"""When a store that failed is asked again. Pure."""

from __future__ import annotations

from tritonpy_repo_cloud.failure import StoreFailure
from tritonpy_repo_cloud.pausing import Pauses


class Absence:
    """The failures in a row, and the pause that they call for. Times are in seconds."""

    def __init__(self, pauses: Pauses) -> None:
        self._pauses = pauses
        self._failures = 0
        self._until = float("-inf")
        self.failure: StoreFailure | None = None

    def lasts(self, now: float) -> bool:
        """Say whether the store is not to be asked yet."""
        return self.failure is not None and now < self._until

    def failed(self, failure: StoreFailure, now: float) -> bool:
        """Take note of a failure; return whether it is news."""
        news = self.failure is None or self.failure.message != failure.message
        self._failures += 1
        self._until = now + self._pauses.after(self._failures)
        self.failure = failure
        return news

    def answered(self) -> bool:
        """Take note that the store answered; return whether that is news."""
        news = self.failure is not None
        self._failures, self._until, self.failure = 0, float("-inf"), None
        return news
