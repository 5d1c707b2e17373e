"""The interface of sharing: which principals' requests a server admits, and in which order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from tritonpy_config.options import NoOptions, Options
from tritonpy_metrics import ModelMetrics
from tritonpy_types import InferRequest, InferResponse


class OrderedRequestQueue(ABC):
    """The requests that wait at one priority level of one model, iterated in execution order.

    Called under the model's lock. A request may be added at any position. The order of the waiting
    requests does not change otherwise. A deque satisfies this interface, too.
    """

    @abstractmethod
    def append(self, request: InferRequest) -> None:
        """Add `request`."""

    def appendleft(self, request: InferRequest) -> None:
        """Put back a removed request that was not run (optional); the default treats it as new."""
        self.append(request)

    @abstractmethod
    def popleft(self) -> InferRequest:
        """Remove and return the first request. Raises IndexError if there is none."""

    @abstractmethod
    def remove(self, request: InferRequest) -> None:
        """Remove `request`. Raises ValueError if it does not wait here."""

    @abstractmethod
    def clear(self) -> None:
        """Remove all requests."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of requests."""

    @abstractmethod
    def __iter__(self) -> Iterator[InferRequest]:
        """Return the requests in execution order."""

    def __contains__(self, request: object) -> bool:
        """Return whether `request` waits here."""
        return any(each is request for each in self)

    def extend(self, requests: Iterable[InferRequest]) -> None:
        """Add `requests` in their order."""
        for request in requests:
            self.append(request)


WaitingQueue = deque[InferRequest] | OrderedRequestQueue


class Sharing(ABC):
    """Divides a server between principals; a server has at most one.

    Any thread may call any method; none may block. Only requests of clients are admitted. A request
    that a model makes belongs to the request that it is made for (`InferRequest.parent`).
    """

    Options: ClassVar[type[Options]] = NoOptions
    counts_responses = False
    """Whether `responded` is to be called."""

    def __init__(self, options: Any, metrics: ModelMetrics) -> None:
        self.options = options
        self.metrics = metrics

    @abstractmethod
    def admit(self, request: InferRequest) -> None:
        """Record a request before it is queued, or raise ResourceExhausted."""

    def headers(self) -> frozenset[str]:
        """Return the lower-case names of the headers that it needs (optional); called once.

        They are kept in `InferRequest.headers`.
        """
        return frozenset()

    def responded(self, request: InferRequest, response: InferResponse) -> None:
        """Record a response of an admitted request (optional), before the client gets it."""

    def ended(self, request: InferRequest) -> None:
        """Record the end of an admitted request (optional); called once for each.

        It has its final response, or its model refused it.
        """

    def new_queue(self) -> WaitingQueue:
        """Return an empty queue for one priority level of one model.

        The default is first in, first out.
        """
        return deque()
