"""A sink that records every response of a request, including responses after the final one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import ClassVar

from tritonpy import CallbackSink, InferRequest, InferResponse

WAIT_S = 10.0  # reached only when something is wrong


class RecordingSink:
    """The owner or sink of requests that keeps their responses.

    It also keeps a response that follows the final one, which a model would drop, so that `check`
    can report it. `requests` lists requests in the order of their first responses, `rescheduled`
    those that a backend returned for another execution.
    """

    wait_s: ClassVar[float] = WAIT_S

    def __init__(self, on_cancel: Callable[[InferRequest], None] = lambda _request: None) -> None:
        self.requests: list[InferRequest] = []
        self.rescheduled: list[InferRequest] = []
        self.sink = CallbackSink(self._record)
        self._on_cancel = on_cancel
        self._changed = threading.Condition()
        self._responses: dict[int, list[InferResponse]] = {}

    def respond(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        """Record one response per request."""
        assert len(requests) == len(responses), (
            f"{len(responses)} responses for {len(requests)} requests"
        )
        for request, response in zip(requests, responses, strict=True):
            request.finished = request.finished or response.final
            self._record(request, response)

    def reschedule(self, request: InferRequest) -> None:
        """Record a request that a backend returned."""
        with self._changed:
            self.rescheduled.append(request)
            self._changed.notify_all()

    def take_rescheduled(self) -> list[InferRequest]:
        """Return the requests rescheduled since the last call."""
        with self._changed:
            taken, self.rescheduled = self.rescheduled, []
        return taken

    def cancel(self, request: InferRequest) -> None:
        """Call `on_cancel`."""
        self._on_cancel(request)

    def responses(self, request: InferRequest) -> list[InferResponse]:
        """Return the responses of `request` so far."""
        with self._changed:
            return list(self._responses.get(id(request), ()))

    def wait(
        self, *requests: InferRequest, timeout_s: float | None = None
    ) -> list[list[InferResponse]]:
        """Return the responses of each request once all are final or rescheduled.

        Raises AssertionError that names the missing requests after `timeout_s` (default: `wait_s`).
        """
        timeout_s = self.wait_s if timeout_s is None else timeout_s
        with self._changed:
            if not self._changed.wait_for(lambda: all(map(self._is_settled, requests)), timeout_s):
                missing = [
                    number
                    for number, request in enumerate(requests)
                    if not self._is_settled(request)
                ]
                raise AssertionError(
                    f"no final response within {timeout_s:g} s for request number {missing} of "
                    f"{len(requests)}"
                )
        return [self.responses(request) for request in requests]

    def check(self, *requests: InferRequest) -> None:
        """Raise AssertionError unless the last response of each request is its only final one."""
        for number, request in enumerate(requests):
            finals = [response.final for response in self.responses(request)]
            assert finals.count(True) == 1, (
                f"request number {number} has {finals.count(True)} final responses, it must have 1"
            )
            assert finals[-1], f"request number {number} has a response after its final one"

    def _record(self, request: InferRequest, response: InferResponse) -> None:
        with self._changed:
            if id(request) not in self._responses:
                self.requests.append(request)  # keeps the request alive, and with it its id
            self._responses.setdefault(id(request), []).append(response)
            self._changed.notify_all()

    def _is_settled(self, request: InferRequest) -> bool:
        rescheduled = any(request is each for each in self.rescheduled)
        return rescheduled or any(
            response.final for response in self._responses.get(id(request), ())
        )
