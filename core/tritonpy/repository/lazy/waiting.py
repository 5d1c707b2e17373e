"""Requests that wait until their model is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tritonpy.errors import Cancelled
from tritonpy.types import InferRequest, InferResponse
from tritonpy.types.request import UNOWNED


class WaitingRequests:
    """Those of one model, in the order in which they came; it owns them (`types.Owner`).

    Whoever takes a request out answers it or hands it on: it is taken out once. Everything but `cancel` is called under the guard of whoever made it.
    """

    def __init__(self, cancelled: Callable[[InferRequest], bool]) -> None:
        """`cancelled(request)` takes a request out by `discard`, under the guard."""
        self._cancelled = cancelled
        self._requests: dict[InferRequest, int] = {}

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[InferRequest]:
        return iter(list(self._requests))

    def add(self, request: InferRequest, until_ns: int) -> None:
        """Own `request`; it is overdue from `until_ns` on."""
        self._requests[request] = until_ns
        request.owner = self

    def discard(self, request: InferRequest) -> bool:
        """Let go of `request`; False where it does not wait any more."""
        if self._requests.pop(request, None) is None:
            return False
        request.owner = UNOWNED
        return True

    def take(self, *, overdue_at: int | None = None) -> list[InferRequest]:
        """Let go of all requests, or of those that are overdue at a time, and return them."""
        taken = [request for request, until in self._requests.items() if overdue_at is None or until <= overdue_at]
        for request in taken:
            self.discard(request)
        return taken

    def next_overdue(self) -> int | None:
        """Return when the first of them is overdue."""
        return min(self._requests.values(), default=None)

    def answer(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        """Answer requests that were not handed on: nobody does while they wait."""
        UNOWNED.answer(requests, responses)

    def reschedule(self, request: InferRequest) -> None:
        """Nothing schedules it."""

    def cancel(self, request: InferRequest) -> None:
        """Answer a request that nobody wants any more."""
        if self._cancelled(request):
            request.respond(InferResponse.failed(request, Cancelled("Request cancelled")))
