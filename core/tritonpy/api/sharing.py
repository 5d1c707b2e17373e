"""The interface of what shares a server between its callers: who is let in, and in which order what waits is run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from tritonpy.api.options import NoOptions, Options
from tritonpy.custom_metrics import ModelMetrics
from tritonpy.types import InferRequest


class RequestLine(ABC):
    """The requests that wait at one priority level of one model, iterated in the order in which they are to run; a deque is one too.

    Called under the model's lock. What is added may come to stand anywhere. The order of those that wait changes in no other way.
    """

    @abstractmethod
    def append(self, request: InferRequest) -> None:
        """Add `request`."""

    def appendleft(self, request: InferRequest) -> None:
        """Add a request again that was removed and not run (optional); by default it is like a new one."""
        self.append(request)

    @abstractmethod
    def popleft(self) -> InferRequest:
        """Remove and return the first. Raises IndexError where there is none."""

    @abstractmethod
    def remove(self, request: InferRequest) -> None:
        """Remove `request`. Raises ValueError where it does not wait here."""

    @abstractmethod
    def clear(self) -> None:
        """Remove all."""

    @abstractmethod
    def __len__(self) -> int:
        """Return how many there are."""

    @abstractmethod
    def __iter__(self) -> Iterator[InferRequest]:
        """Return them in their order."""

    def __contains__(self, request: object) -> bool:
        """Say whether `request` waits here."""
        return any(each is request for each in self)

    def extend(self, requests: Iterable[InferRequest]) -> None:
        """Add `requests`, in their order."""
        for request in requests:
            self.append(request)


Line = deque[InferRequest] | RequestLine


class Sharing(ABC):
    """Shares a server between its callers; there is one at most. Every method may be called from any thread and must not block.

    Only what clients ask for is admitted: a request that a model makes belongs to the request that it is made for (`InferRequest.parent`).
    """

    Options: ClassVar[type[Options]] = NoOptions

    def __init__(self, options: Any, metrics: ModelMetrics) -> None:
        self.options = options
        self.metrics = metrics

    @abstractmethod
    def admit(self, request: InferRequest) -> None:
        """Take note of a request on its way to its model, or raise ResourceExhausted."""

    def headers(self) -> frozenset[str]:
        """Return the names, in lower case, of the headers that it looks for in `InferRequest.headers` (optional); asked once."""
        return frozenset()

    def ended(self, request: InferRequest) -> None:
        """Take note that an admitted request has its final answer, or that its model refused it; called once for each (optional)."""

    def line(self) -> Line:
        """Return an empty line for one priority level of one model; the default is first in, first out."""
        return deque()
