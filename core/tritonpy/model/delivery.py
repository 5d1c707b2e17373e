"""Delivery of responses to their sinks, optionally in the order of the requests' arrival."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Sequence

from tritonpy_types import InferRequest, InferResponse

RequestResponse = tuple[InferRequest, InferResponse]


class ResponseDelivery(ABC):
    """Sends responses to their sinks."""

    def register(self, requests: Sequence[InferRequest]) -> None:
        """Record arrivals; called under the model's lock."""

    def unregister(self, request: InferRequest) -> None:
        """Remove a rejected request; called under the model's lock."""

    @abstractmethod
    def deliver(self, pairs: Iterable[RequestResponse]) -> None:
        """Send responses as soon as they may be sent; called without the model's lock."""


class ImmediateDelivery(ResponseDelivery):
    """Sends each response immediately."""

    def deliver(self, pairs: Iterable[RequestResponse]) -> None:
        for request, response in pairs:
            request.sink.put(request, response)


class OrderedDelivery(ResponseDelivery):
    """Buffers responses until every earlier request has its final response (`preserve_ordering`).

    One thread sends at a time, which keeps the order across threads. It also sends the responses
    that other threads deliver meanwhile, so that no lock is held while a sink runs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arrivals: deque[InferRequest] = deque()
        self._buffered: dict[int, list[InferResponse]] = {}
        self._sending = False

    def register(self, requests: Sequence[InferRequest]) -> None:
        with self._lock:
            self._arrivals.extend(requests)

    def unregister(self, request: InferRequest) -> None:
        with self._lock:
            self._arrivals.remove(request)

    def deliver(self, pairs: Iterable[RequestResponse]) -> None:
        with self._lock:
            for request, response in pairs:
                self._buffered.setdefault(id(request), []).append(response)
            if self._sending:
                return
            self._sending = True
        while due := self._pop_due():
            for request, response in due:
                request.sink.put(request, response)

    def _pop_due(self) -> list[RequestResponse]:
        due: list[RequestResponse] = []
        with self._lock:
            while self._arrivals:
                head = self._arrivals[0]
                responses = self._buffered.pop(id(head), ())
                due.extend([(head, response) for response in responses])
                if not any(response.final for response in responses):
                    break
                self._arrivals.popleft()
            self._sending = bool(due)
        return due
