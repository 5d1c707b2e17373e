"""Requests that wait until their model is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tritonpy import Cancelled, InferRequest, InferResponse
from tritonpy.repository import UNOWNED


class WaitingRequests:
    """The waiting requests of one model, in the order of arrival; it owns them (`types.Owner`).

    A request is taken out once, by the code that responds to it or passes it on. Everything but
    `cancel` is called under the creator's guard.
    """

    def __init__(self, cancelled: Callable[[InferRequest], bool]) -> None:
        """`cancelled(request)` calls `discard` under the guard and returns its result."""
        self._cancelled = cancelled
        self._requests: dict[InferRequest, int] = {}

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[InferRequest]:
        return iter(list(self._requests))

    def add(self, request: InferRequest, until_ns: int) -> None:
        """Own `request` until `until_ns`."""
        self._requests[request] = until_ns
        request.owner = self

    def discard(self, request: InferRequest) -> bool:
        """Release `request`; False if it does not wait any more."""
        if self._requests.pop(request, None) is None:
            return False
        request.owner = UNOWNED
        return True

    def take(self, *, overdue_at: int | None = None) -> list[InferRequest]:
        """Release and return all requests, or those overdue at `overdue_at`."""
        taken = [
            request
            for request, until in self._requests.items()
            if overdue_at is None or until <= overdue_at
        ]
        for request in taken:
            self.discard(request)
        return taken

    def next_overdue(self) -> int | None:
        """Return the earliest deadline, or None."""
        return min(self._requests.values(), default=None)

    def respond(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        """Send the responses unchanged."""
        UNOWNED.respond(requests, responses)

    def reschedule(self, request: InferRequest) -> None:
        """Do nothing: the request is not scheduled."""

    def cancel(self, request: InferRequest) -> None:
        """Respond to a cancelled request."""
        if self._cancelled(request):
            request.respond(InferResponse.failed(request, Cancelled("Request cancelled")))
