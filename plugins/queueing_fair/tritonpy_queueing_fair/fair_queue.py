"""A request queue with start-time fair queueing. Callers provide the lock."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterator

from tritonpy import InferRequest
from tritonpy.scheduling import OrderedRequestQueue

_MIN_LIMIT = 64
_Entry = tuple[float, int, InferRequest]


class FairQueue(OrderedRequestQueue):
    """Requests of each tenant in order, and tenants by start-time fair queueing.

    In virtual time, a request starts when its tenant's previous request finishes, or now. It takes
    its rows divided by the tenant's weight. The earliest start runs first. Virtual time is the
    start of the last request that ran. It also advances by the service that every waiting tenant
    could have received meanwhile. So an idle tenant accumulates no credit, and a stream of new
    tenants cannot block others.

    The service of two waiting tenants differs at most by the largest request of each, divided by
    its weight.

    `name_of` returns the tenant of a request, `weight_of` the weight of a tenant.
    """

    def __init__(
        self, name_of: Callable[[InferRequest], str], weight_of: Callable[[str], float]
    ) -> None:
        self._name_of = name_of
        self._weight_of = weight_of
        self._order = itertools.count()
        self._now = 0.0
        self._size = 0
        self._weights = 0.0  # sum over waiting tenants
        self._limit = _MIN_LIMIT
        self._finished: dict[str, float] = {}  # by tenant; times up to `_now` are irrelevant
        self._waiting: dict[str, deque[_Entry]] = {}
        self._heads: list[tuple[float, int, str]] = []  # heap of each tenant's first request

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
        if len(self._finished) > self._limit:
            self._remove_idle()

    def appendleft(self, request: InferRequest) -> None:
        """Put back a request that was not run at the front of its tenant.

        It is not charged again.
        """
        name = self._name_of(request)
        waiting = self._waiting.setdefault(name, deque())
        start = min(self._now, waiting[0][0]) if waiting else self._now
        waiting.appendleft((start, -next(self._order), request))
        if len(waiting) == 1:
            self._weights += self._weight_of(name)
        self._size += 1
        self._rebuild_heads()

    def popleft(self) -> InferRequest:
        start, _, name = heapq.heappop(self._heads)
        waiting = self._waiting[name]
        request = waiting.popleft()[2]
        self._now = max(start, self._now + request.batch_size / self._weights)
        self._size -= 1
        if waiting:
            heapq.heappush(self._heads, (*waiting[0][:2], name))
        else:
            self._remove_tenant(name)
        if not self._size:
            self.clear()
        return request

    def remove(self, request: InferRequest) -> None:
        name = self._name_of(request)
        waiting = self._waiting.get(name, ())
        entry = next((each for each in waiting if each[2] is request), None)
        if entry is None:
            raise ValueError("the request is not in this queue")
        waiting = self._waiting[name]
        waiting.remove(entry)
        self._size -= 1
        if not waiting:
            self._remove_tenant(name)
        self._rebuild_heads()
        if not self._size:
            self.clear()

    def clear(self) -> None:
        self._now = self._weights = 0.0
        self._size = 0
        self._limit = _MIN_LIMIT
        self._finished.clear()
        self._waiting.clear()
        self._heads.clear()

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[InferRequest]:
        heads = self._heads.copy()
        positions = dict.fromkeys(self._waiting, 0)
        while heads:
            _, _, name = heads[0]
            waiting, position = self._waiting[name], positions[name]
            yield waiting[position][2]
            positions[name] = position = position + 1
            if position < len(waiting):
                heapq.heapreplace(heads, (*waiting[position][:2], name))
            else:
                heapq.heappop(heads)

    def _rebuild_heads(self) -> None:
        self._heads = [(*each[0][:2], tenant) for tenant, each in self._waiting.items()]
        heapq.heapify(self._heads)

    def _remove_tenant(self, name: str) -> None:
        del self._waiting[name]
        self._weights -= self._weight_of(name)

    def _remove_idle(self) -> None:
        self._finished = {
            name: finish for name, finish in self._finished.items() if finish > self._now
        }
        self._limit = max(_MIN_LIMIT, 2 * len(self._finished))
