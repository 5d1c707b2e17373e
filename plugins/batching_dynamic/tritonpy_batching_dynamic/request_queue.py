"""Waiting requests by priority level, with timeouts. Callers provide the lock and the time."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import chain, islice
from operator import attrgetter

from tritonpy import InferRequest, QueueFull
from tritonpy.scheduling import UNBOUNDED, WaitingQueue
from tritonpy_batching_dynamic.queue_policy import QueuePolicy

NEVER = UNBOUNDED


class _Level:
    """A priority level: requests within their timeout, followed by delayed ones."""

    __slots__ = ("delayed", "max_size", "number", "policy", "times_out", "waiting")

    def __init__(self, number: int, policy: QueuePolicy, waiting: WaitingQueue) -> None:
        self.number = number
        self.policy = policy
        self.max_size = policy.max_size or NEVER
        self.times_out = policy.timeout_ns > 0
        self.waiting = waiting
        self.delayed: deque[InferRequest] = deque()


_NUMBER = attrgetter("number")


class RequestQueue:
    """Waiting requests. Iteration yields them in execution order.

    `levels` is the lowest priority (0: no priorities); level 1 runs first. A request without a
    valid priority gets `default_level`. `policies` are those of single levels, `default_policy`
    applies to the others. A level without its own policy exists only while requests wait in it,
    because priorities go up to 2^64.

    `line` makes an empty queue for one level; without it, each level runs in order of arrival.

    `size` is the number of waiting requests. `in_order` means that the first request is the oldest.
    `epoch` increases with every change except a request added at the very end. No timeout is due
    before `next_deadline` (ns), which may be earlier than the first timeout but is never later.
    """

    def __init__(
        self,
        default_policy: QueuePolicy,
        policies: Mapping[int, QueuePolicy] | None = None,
        levels: int = 0,
        default_level: int = 0,
        line: Callable[[], WaitingQueue] | None = None,
    ) -> None:
        self._line: Callable[[], WaitingQueue] = line or deque
        self._is_fifo = line is None
        self._default_policy = default_policy
        self._last_level = levels
        self._default_level = default_level
        configured = dict(policies or {}) if levels else {default_level: default_policy}
        self._configured = frozenset(configured)
        self._levels: dict[int, _Level] = {}
        # Both in execution order. The requests of level i are in the lines 2i and 2i + 1 (delayed).
        self._order: list[_Level] = []
        self._lines: list[WaitingQueue] = []
        self._deadlines: dict[InferRequest, int] = {}
        self.size = 0
        self.epoch = 0
        self.in_order = False
        self.next_deadline = NEVER
        for number, policy in configured.items():
            self._open(number, policy)

    def append(self, request: InferRequest) -> None:
        """Add `request` to its level. Raises `QueueFull` if the level is full."""
        level = self._level_of(request) or self._open(
            self._number_of(request), self._default_policy
        )
        if len(level.waiting) + len(level.delayed) >= level.max_size:
            raise QueueFull("Exceeds maximum queue size").with_request_id(request.id)
        if not self.in_order:
            # The request may still be the last one. Then the window is recomputed needlessly.
            self.epoch += 1
        if level.times_out:
            self._watch(request, level.policy)
        level.waiting.append(request)
        self.size += 1

    def appendleft(self, request: InferRequest) -> None:
        """Put a removed request back at the front of its level. Its deadline is unchanged."""
        level = self._level_of(request) or self._open(
            self._number_of(request), self._default_policy
        )
        self.epoch += 1
        if level.times_out:
            self._watch(request, level.policy)
        level.waiting.appendleft(request)
        self.size += 1

    def extend(self, requests: Sequence[InferRequest]) -> bool:
        """Append coalesced requests. Return False and add none if that is not possible.

        It is not possible if they change the order, may time out, or exceed the level's limit.
        """
        if not self.in_order:
            return False
        level = self._level_of(requests[0])
        if (
            level is not self._order[0]
            or level.times_out
            or len(level.waiting) + len(requests) > level.max_size
        ):
            return False
        level.waiting.extend(requests)
        self.size += len(requests)
        return True

    def after(self, count: int, limit: int) -> list[InferRequest]:
        """Return up to `limit` of the requests that follow the first `count`."""
        if count + 1 == self.size and self.in_order:
            return [self._lines[0][-1]]  # type: ignore[index]  # the common case: one new request, in a deque
        return list(islice(chain.from_iterable(self._lines), count, count + limit))

    def pop(self, count: int) -> list[InferRequest]:
        """Remove and return the first `count` requests, or all if there are fewer."""
        if self.in_order and count >= self.size:  # the common case: all requests, in one line
            taken = list(self._lines[0])
            self._lines[0].clear()
            self._record_removal(taken)
            return taken
        taken = []
        index = 0
        for index, line in enumerate(self._lines):  # noqa: B007
            room = count - len(taken)
            if len(line) > room:
                taken += [line.popleft() for _ in range(room)]
                break
            taken += line
            line.clear()
        self._remove_empty_levels(taken, index // 2)
        return taken

    def remove(self, request: InferRequest) -> bool:
        """Remove `request`. Return whether it was waiting."""
        for index, line in enumerate(self._lines):
            if request in line:
                line.remove(request)
                self._remove_empty_levels((request,), index // 2)
                return True
        return False

    def expire(self, now_ns: int) -> list[InferRequest]:
        """Remove and return overdue requests to reject. Move delayed ones behind their level."""
        if now_ns < self.next_deadline:
            return []
        overdue = {request for request, deadline in self._deadlines.items() if deadline <= now_ns}
        rejected: list[InferRequest] = []
        for level in self._order:
            late = [request for request in level.waiting if request in overdue]
            if late:
                self._remove_late(late, level.waiting, overdue)
                (level.delayed if level.policy.delays else rejected).extend(late)
        for request in overdue:
            del self._deadlines[request]
        self._remove_empty_levels(rejected, len(self._order) - 1)
        self.next_deadline = min(self._deadlines.values(), default=NEVER)
        return rejected

    def __iter__(self) -> Iterator[InferRequest]:
        return chain.from_iterable(self._lines)

    def _remove_late(
        self, late: Sequence[InferRequest], waiting: WaitingQueue, overdue: Set[InferRequest]
    ) -> None:
        if self._is_fifo:
            in_time = [request for request in waiting if request not in overdue]
            waiting.clear()
            waiting.extend(in_time)
        else:  # clearing a line would lose its fairness state
            for request in late:
                waiting.remove(request)

    def _number_of(self, request: InferRequest) -> int:
        return request.priority if 0 < request.priority <= self._last_level else self._default_level

    def _level_of(self, request: InferRequest) -> _Level | None:
        return self._levels.get(self._number_of(request))

    def _open(self, number: int, policy: QueuePolicy) -> _Level:
        level = self._levels[number] = _Level(number, policy, self._line())
        insort(self._order, level, key=_NUMBER)
        index = 2 * bisect_left(self._order, number, key=_NUMBER)
        self._lines[index:index] = (level.waiting, level.delayed)
        self._update_order()
        return level

    def _close(self, level: _Level) -> None:
        index = bisect_left(self._order, level.number, key=_NUMBER)
        del self._levels[level.number], self._order[index], self._lines[2 * index : 2 * index + 2]

    def _watch(self, request: InferRequest, policy: QueuePolicy) -> None:
        deadline = policy.deadline(request.queued_ns, request.timeout_us)
        self._deadlines[request] = deadline
        self.next_deadline = min(self.next_deadline, deadline)

    def _record_removal(self, gone: Sequence[InferRequest]) -> None:
        self.size -= len(gone)
        self.epoch += 1
        if self._deadlines:
            for request in gone:
                self._deadlines.pop(request, None)

    def _remove_empty_levels(self, gone: Sequence[InferRequest], last: int) -> None:
        # Levels after index `last` did not change, so only earlier ones can have become empty.
        self._record_removal(gone)
        if len(self._order) > len(self._configured):
            for level in self._order[: last + 1]:
                if level.number not in self._configured and not level.waiting and not level.delayed:
                    self._close(level)
        self._update_order()

    def _update_order(self) -> None:
        self.in_order = self._is_fifo and len(self._order) == 1 and not self._lines[1]
