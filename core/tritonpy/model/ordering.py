"""Answers in the order in which requests arrived, whatever order they were computed in."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Sequence

from tritonpy.types import InferRequest, InferResponse

Answer = tuple[InferRequest, InferResponse]


class Delivery(ABC):
    """Brings answers to their sinks."""

    def expect(self, requests: Sequence[InferRequest]) -> None:
        """Take note of arrivals; called under the model's lock."""

    def forget(self, request: InferRequest) -> None:
        """The last arrival was refused; called under the model's lock."""

    @abstractmethod
    def deliver(self, answers: Iterable[Answer]) -> None:
        """Send what may be sent; called without the model's lock."""


class AsTheyCome(Delivery):
    """Sends each answer at once."""

    def deliver(self, answers: Iterable[Answer]) -> None:
        for request, response in answers:
            request.sink.put(request, response)


class InArrivalOrder(Delivery):
    """Holds answers back until every earlier request has its final one: `preserve_ordering`.

    One thread sends at a time, whichever came first: that is what makes the order hold between threads. What others bring
    meanwhile is sent by that one too, so that no lock is held while a sink takes an answer.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arrivals: deque[InferRequest] = deque()
        self._held: dict[int, list[InferResponse]] = {}
        self._sending = False

    def expect(self, requests: Sequence[InferRequest]) -> None:
        with self._lock:
            self._arrivals.extend(requests)

    def forget(self, request: InferRequest) -> None:
        with self._lock:
            self._arrivals.remove(request)

    def deliver(self, answers: Iterable[Answer]) -> None:
        with self._lock:
            for request, response in answers:
                self._held.setdefault(id(request), []).append(response)
            if self._sending:
                return
            self._sending = True
        while due := self._take_due():
            for request, response in due:
                request.sink.put(request, response)

    def _take_due(self) -> list[Answer]:
        due: list[Answer] = []
        with self._lock:
            while self._arrivals:
                head = self._arrivals[0]
                responses = self._held.pop(id(head), ())
                due.extend([(head, response) for response in responses])
                if not any(response.final for response in responses):
                    break
                self._arrivals.popleft()
            self._sending = bool(due)
        return due
