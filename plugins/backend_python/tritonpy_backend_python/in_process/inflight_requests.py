"""Requests of an instance without a final response."""

from __future__ import annotations

from collections.abc import Sequence

from tritonpy import InferRequest


class InflightRequests:
    """Requests by number. The model's objects use these numbers. Thread-safe."""

    def __init__(self) -> None:
        self._last = -1
        self._requests: dict[int, InferRequest] = {}
        self._begun: set[int] = set()  # requests with a response that was not final

    def add(self, requests: Sequence[InferRequest]) -> int:
        """Add requests under consecutive numbers and return the first. Called by one thread."""
        first = self._last + 1
        self._last += len(requests)
        self._requests.update(enumerate(requests, first))
        return first

    def get(self, number: int) -> InferRequest | None:
        """Return the request, or None if it had its final response."""
        return self._requests.get(number)

    def begin(self, number: int) -> None:
        """Record a response that is not final."""
        self._begun.add(number)

    def has_begun(self, number: int) -> bool:
        """Return true if the request had a response."""
        return number in self._begun

    def end(self, number: int) -> InferRequest | None:
        """Remove and return a request that gets its final response or is rescheduled."""
        self._begun.discard(number)
        return self._requests.pop(number, None)
