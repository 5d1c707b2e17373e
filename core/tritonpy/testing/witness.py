"""Sees every answer of a request, also those that come too often."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import ClassVar

from tritonpy.types import CallbackSink, InferRequest, InferResponse

PATIENCE_S = 10.0  # nobody waits that long unless something is wrong


class Witness:
    """Owns requests in place of a model, or stands behind their sink, and keeps their answers.

    A model drops an answer that follows the final one; the witness keeps it, so that `check` can tell.
    `requests` lists what was answered, in order of the first answer; `rescheduled` what a backend handed back.
    """

    patience_s: ClassVar[float] = PATIENCE_S

    def __init__(self, on_cancel: Callable[[InferRequest], None] = lambda _request: None) -> None:
        self.requests: list[InferRequest] = []
        self.rescheduled: list[InferRequest] = []
        self.sink = CallbackSink(self._note)
        self._on_cancel = on_cancel
        self._changed = threading.Condition()
        self._answers: dict[int, list[InferResponse]] = {}

    def answer(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        """Keep one response per request."""
        assert len(requests) == len(responses), f"{len(responses)} responses for {len(requests)} requests"
        for request, response in zip(requests, responses, strict=True):
            request.answered = request.answered or response.final
            self._note(request, response)

    def reschedule(self, request: InferRequest) -> None:
        """Keep what was handed back."""
        with self._changed:
            self.rescheduled.append(request)
            self._changed.notify_all()

    def take_rescheduled(self) -> list[InferRequest]:
        """Return what was handed back since the last call."""
        with self._changed:
            taken, self.rescheduled = self.rescheduled, []
        return taken

    def cancel(self, request: InferRequest) -> None:
        """Pass a cancellation on."""
        self._on_cancel(request)

    def answers(self, request: InferRequest) -> list[InferResponse]:
        """Return the answers of `request` so far."""
        with self._changed:
            return list(self._answers.get(id(request), ()))

    def wait(self, *requests: InferRequest, timeout_s: float | None = None) -> list[list[InferResponse]]:
        """Return the answers of each request once all have their final one, or were handed back.

        Raises AssertionError after `timeout_s` (default: `patience_s`), naming those that are missing.
        """
        timeout_s = self.patience_s if timeout_s is None else timeout_s
        with self._changed:
            if not self._changed.wait_for(lambda: all(map(self._is_settled, requests)), timeout_s):
                missing = [number for number, request in enumerate(requests) if not self._is_settled(request)]
                raise AssertionError(
                    f"no final answer within {timeout_s:g} s for request number {missing} of {len(requests)}"
                )
        return [self.answers(request) for request in requests]

    def check(self, *requests: InferRequest) -> None:
        """Raise AssertionError unless each request has exactly one final answer, and nothing after it."""
        for number, request in enumerate(requests):
            finals = [response.final for response in self.answers(request)]
            assert finals.count(True) == 1, (
                f"request number {number} has {finals.count(True)} final answers, it must have 1"
            )
            assert finals[-1], f"request number {number} was answered after its final answer"

    def _note(self, request: InferRequest, response: InferResponse) -> None:
        with self._changed:
            if id(request) not in self._answers:
                self.requests.append(request)  # keeps the request alive, and with it its id
            self._answers.setdefault(id(request), []).append(response)
            self._changed.notify_all()

    def _is_settled(self, request: InferRequest) -> bool:
        rescheduled = any(request is each for each in self.rescheduled)
        return rescheduled or any(response.final for response in self._answers.get(id(request), ()))
