"""A streaming client that reads responses only when a test calls it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from tritonpy import InferRequest, InferResponse
from tritonpy.frontend import FlowControl, Sink
from tritonpy_testing.recording_sink import WAIT_S


class SlowClient(Sink):
    """The sink of one request, with a window of `max_responses` and `max_bytes` unread bytes."""

    def __init__(self, max_responses: int, max_bytes: int = 1 << 30) -> None:
        self.flow_control = FlowControl(max_responses, max_bytes)
        self.most = 0  # highest number of waiting responses
        self._changed = threading.Condition()
        self._waiting: deque[InferResponse] = deque()

    def put(self, request: InferRequest, response: InferResponse) -> None:
        self.flow_control.put(sum([tensor.nbytes for tensor in response.outputs]))
        with self._changed:
            self._waiting.append(response)
            self.most = max(self.most, len(self._waiting))
            self._changed.notify_all()

    def ready(self, request: InferRequest) -> bool:
        return self.flow_control.ready

    def when_ready(self, request: InferRequest, callback: Callable[[], None]) -> None:
        self.flow_control.when_ready(callback)

    def cancelled(self, request: InferRequest) -> None:
        self.flow_control.release()

    def wait_until_full(self) -> int:
        """Wait until the window is used up, and return the number of waiting responses."""
        self._wait_for(lambda: not self.flow_control.ready)
        return len(self._waiting)

    def fetch(self) -> InferResponse:
        """Wait for the next response and remove it."""
        self._wait_for(lambda: self._waiting)
        response = self._waiting.popleft()
        self.flow_control.take()
        return response

    def fetch_all(self) -> list[InferResponse]:
        """Return all responses up to the final one."""
        fetched = [self.fetch()]
        while not fetched[-1].final:
            fetched.append(self.fetch())
        return fetched

    def leave(self, request: InferRequest) -> None:
        """Disconnect without reading further responses, as a closed connection does."""
        request.cancel()
        self.flow_control.abandon()

    def _wait_for(self, condition: Callable[[], object]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, WAIT_S), "the condition was not met in time"
