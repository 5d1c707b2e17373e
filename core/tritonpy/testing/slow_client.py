"""A client of a stream that fetches when a test tells it to."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from tritonpy.testing.witness import PATIENCE_S
from tritonpy.types import InferRequest, InferResponse, Room, Sink


class SlowClient(Sink):
    """The sink of one request, with room for `max_answers` answers and `max_bytes` bytes that were not fetched."""

    def __init__(self, max_answers: int, max_bytes: int = 1 << 30) -> None:
        self.room = Room(max_answers, max_bytes)
        self.most = 0  # answers that ever waited at once
        self._changed = threading.Condition()
        self._waiting: deque[InferResponse] = deque()

    def put(self, request: InferRequest, response: InferResponse) -> None:
        self.room.put(sum([tensor.nbytes for tensor in response.outputs]))
        with self._changed:
            self._waiting.append(response)
            self.most = max(self.most, len(self._waiting))
            self._changed.notify_all()

    def ready(self, request: InferRequest) -> bool:
        return self.room.ready

    def when_ready(self, request: InferRequest, callback: Callable[[], None]) -> None:
        self.room.when_ready(callback)

    def cancelled(self, request: InferRequest) -> None:
        self.room.release()

    def until_full(self) -> int:
        """Wait until its room is used up; return how many answers wait."""
        self._until(lambda: not self.room.ready)
        return len(self._waiting)

    def fetch(self) -> InferResponse:
        """Wait for the next answer and take it out."""
        self._until(lambda: self._waiting)
        response = self._waiting.popleft()
        self.room.take()
        return response

    def fetch_all(self) -> list[InferResponse]:
        """Fetch what comes until the final answer, that one included."""
        fetched = [self.fetch()]
        while not fetched[-1].final:
            fetched.append(self.fetch())
        return fetched

    def leave(self, request: InferRequest) -> None:
        """Go away without fetching any more, as a closed connection does."""
        request.cancel()
        self.room.abandon()

    def _until(self, condition: Callable[[], object]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE_S), "it never came"
