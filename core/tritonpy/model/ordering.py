"""Answers in the order in which requests arrived, whatever order they were computed in."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable

from tritonpy.types import InferRequest, InferResponse

Answer = tuple[InferRequest, InferResponse]


class Delivery(ABC):
    """Brings answers to their sinks."""

    def expect(self, request: InferRequest) -> None:
        """Take note of an arrival; called under the model's lock."""

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

    Its lock is held while sinks take answers: that is what makes the order hold between threads. Sinks never block.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arrivals: deque[InferRequest] = deque()
        self._held: dict[int, list[InferResponse]] = {}

    def expect(self, request: InferRequest) -> None:
        with self._lock:
            self._arrivals.append(request)

    def forget(self, request: InferRequest) -> None:
        with self._lock:
            self._arrivals.remove(request)

    def deliver(self, answers: Iterable[Answer]) -> None:
        with self._lock:
            for request, response in answers:
                self._held.setdefault(id(request), []).append(response)
            while self._arrivals and self._send_head():
                self._arrivals.popleft()

    def _send_head(self) -> bool:
        head = self._arrivals[0]
        responses = self._held.pop(id(head), ())
        for response in responses:
            head.sink.put(head, response)
        return any(response.final for response in responses)
