"""Requests in the order of start-time fair queueing. No clock, no lock."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterator

from tritonpy import InferRequest, RequestLine

_FEW = 64
_Entry = tuple[float, int, InferRequest]


class FairLine(RequestLine):
    """Each tenant's requests in their order; between tenants, the one that has had least of its share comes first.

    A request starts, in virtual time, when its tenant's last one is finished or now, and takes its rows over the tenant's weight; the
    earliest start runs first. Now is the start of what ran last, and moves on by what every tenant that waits could have been given
    meanwhile: a tenant that was idle begins there and has saved nothing up, and new tenants without end keep nobody waiting.
    What two tenants that both wait are given differs at most by the largest request of each, over its weight.
    `name_of` tells the tenant of a request, `weight_of` that of a tenant.
    """

    def __init__(self, name_of: Callable[[InferRequest], str], weight_of: Callable[[str], float]) -> None:
        self._name_of = name_of
        self._weight_of = weight_of
        self._order = itertools.count()
        self._now = 0.0
        self._size = 0
        self._weights = 0.0  # of the tenants that wait
        self._most = _FEW
        self._finished: dict[str, float] = {}  # by tenant; what is not after `now` says nothing
        self._waiting: dict[str, deque[_Entry]] = {}
        self._heads: list[tuple[float, int, str]] = []  # a heap of each tenant's first

    def append(self, request: InferRequest) -> None:
        name = self._name_of(request)
        start = max(self._now, self._finished.get(name, 0.0))
        self._finished[name] = start + request.batch_size / self._weight_of(name)
        entry = (start, next(self._order), request)
        waiting = self._waiting.get(name)
        if waiting is None:
            self._weights += self._weight_of(name)
            self._waiting[name] = deque([entry])
            heapq.heappush(self._heads, (start, entry[1], name))
        else:
            waiting.append(entry)
        self._size += 1
        if len(self._finished) > self._most:
            self._forget_idle()

    def appendleft(self, request: InferRequest) -> None:
        """Add a request again that was not run, before the others of its tenant: its share was spent on it before."""
        name = self._name_of(request)
        waiting = self._waiting.setdefault(name, deque())
        start = min(self._now, waiting[0][0]) if waiting else self._now
        waiting.appendleft((start, -next(self._order), request))
        if len(waiting) == 1:
            self._weights += self._weight_of(name)
        self._size += 1
        self._make_heads()

    def popleft(self) -> InferRequest:
        start, _, name = heapq.heappop(self._heads)
        waiting = self._waiting[name]
        request = waiting.popleft()[2]
        self._now = max(start, self._now + request.batch_size / self._weights)
        self._size -= 1
        if waiting:
            heapq.heappush(self._heads, (*waiting[0][:2], name))
        else:
            self._leave(name)
        if not self._size:
            self.clear()
        return request

    def remove(self, request: InferRequest) -> None:
        name = self._name_of(request)
        waiting = self._waiting.get(name, ())
        entry = next((each for each in waiting if each[2] is request), None)
        if entry is None:
            raise ValueError("the request does not wait here")
        waiting = self._waiting[name]
        waiting.remove(entry)
        self._size -= 1
        if not waiting:
            self._leave(name)
        self._make_heads()
        if not self._size:
            self.clear()

    def clear(self) -> None:
        self._now = self._weights = 0.0
        self._size = 0
        self._most = _FEW
        self._finished.clear()
        self._waiting.clear()
        self._heads.clear()

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[InferRequest]:
        heads = self._heads.copy()
        places = dict.fromkeys(self._waiting, 0)
        while heads:
            _, _, name = heads[0]
            waiting, place = self._waiting[name], places[name]
            yield waiting[place][2]
            places[name] = place = place + 1
            if place < len(waiting):
                heapq.heapreplace(heads, (*waiting[place][:2], name))
            else:
                heapq.heappop(heads)

    def _make_heads(self) -> None:
        self._heads = [(*each[0][:2], tenant) for tenant, each in self._waiting.items()]
        heapq.heapify(self._heads)

    def _leave(self, name: str) -> None:
        del self._waiting[name]
        self._weights -= self._weight_of(name)

    def _forget_idle(self) -> None:
        self._finished = {name: finish for name, finish in self._finished.items() if finish > self._now}
        self._most = max(_FEW, 2 * len(self._finished))
