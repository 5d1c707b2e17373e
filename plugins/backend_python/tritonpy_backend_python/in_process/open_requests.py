"""The requests that one instance has received and not answered for good."""

from __future__ import annotations

from collections.abc import Sequence

from tritonpy import InferRequest


class OpenRequests:
    """By the numbers that the model's objects know them by. Each method is safe in any thread."""

    def __init__(self) -> None:
        self._last = -1
        self._requests: dict[int, InferRequest] = {}
        self._begun: set[int] = set()  # had an answer that was not final

    def add(self, requests: Sequence[InferRequest]) -> int:
        """Take requests in, under consecutive numbers; return the first. Called by one thread."""
        first = self._last + 1
        self._last += len(requests)
        self._requests.update(enumerate(requests, first))
        return first

    def get(self, number: int) -> InferRequest | None:
        """Return the request, None where it has had its final answer."""
        return self._requests.get(number)

    def begin(self, number: int) -> None:
        """Take note of an answer that is not final."""
        self._begun.add(number)

    def has_begun(self, number: int) -> bool:
        """Say whether it has had an answer."""
        return number in self._begun

    def end(self, number: int) -> InferRequest | None:
        """Return the request, and forget it: it gets its final answer now, or goes back to the scheduler."""
        self._begun.discard(number)
        return self._requests.pop(number, None)
