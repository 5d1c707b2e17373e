"""Which sequences there are, which of them have a seat at an instance, and who is next. No clock, no lock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush

from tritonpy import InferRequest
from tritonpy_batching_sequence.lane import Lane
from tritonpy_batching_sequence.live_sequence import NEVER, LiveSequence

_US = 1_000


class MissingStart(Exception):
    """A request belongs to no sequence that is known, and starts none."""


class Roster:
    """Gives each sequence a seat, the lowest first, or a place in the backlog until one is free.

    `seats` per instance. With `one_at_a_time` the next request of a sequence may run when the one before is answered, otherwise as soon as that was
    pulled. A sequence without any open request for `idle_ns` loses its seat. The caller answers the requests that a method returns.
    """

    def __init__(self, seats: int, idle_ns: int, one_at_a_time: bool) -> None:
        self.lanes: dict[int, Lane] = {}
        self._seats = seats
        self._idle_ns = idle_ns
        self._one_at_a_time = one_at_a_time
        self._live: dict[int | str, LiveSequence] = {}
        self._homes: dict[InferRequest, LiveSequence] = {}  # of every request that waits or runs
        self._free: list[tuple[bool, int, int]] = []  # the instance is down, seat, instance
        self._any_down = False  # some instance is
        self._backlog: dict[LiveSequence, None] = {}
        self._deadline_ns = NEVER  # no sequence of the backlog is overdue before
        self._idle: dict[LiveSequence, int] = {}  # since when, the longest first
        self._fresh: list[LiveSequence] = []  # idle, or ready, since some moment after the last look at the clock

    def of(self, request: InferRequest) -> LiveSequence | None:
        """Return the sequence of a request that waits or runs."""
        return self._homes.get(request)

    def add(self, request: InferRequest, id: int | str, start: bool, end: bool, now_ns: int) -> LiveSequence:  # noqa: A002
        """Put `request` behind the others of its sequence. Raises MissingStart."""
        sequence = self._live.get(id)
        if sequence is None:
            if not start:
                raise MissingStart
            sequence = self._live[id] = LiveSequence(id)
            self._seat(sequence)
        if end:
            self._end(sequence)
        self._homes[request] = sequence
        sequence.waiting.append(request)
        if sequence.lane is None:
            self._limit(sequence, request, now_ns)
        else:
            self._offer(sequence)
        return sequence

    def pull(self, sequence: LiveSequence) -> InferRequest:
        """Take the next request of a ready sequence for its instance."""
        lane, request = sequence.lane, sequence.waiting.popleft()
        assert lane is not None, "only a sequence with a seat is ready: this is a bug"  # noqa: S101
        sequence.running.add(request)
        sequence.begun = True
        lane.decision = None
        if self._one_at_a_time or not sequence.waiting:
            del lane.ready[sequence]
        if sequence.ended and not sequence.waiting and not self._one_at_a_time:
            self._leave(sequence)
        return request

    def release(self, request: InferRequest) -> LiveSequence | None:
        """Take note that a pulled request was answered; return its sequence, None where it was not pulled."""
        sequence = self._homes.get(request)
        if sequence is None or request not in sequence.running:
            return None
        del self._homes[request]
        sequence.running.remove(request)
        self._settle(sequence)
        return sequence

    def put_back(self, request: InferRequest) -> LiveSequence | None:
        """Let a pulled request run again, before the others of its sequence; return that, None where it was not pulled."""
        sequence = self._homes.get(request)
        if sequence is None or request not in sequence.running:
            return None
        sequence.running.remove(request)
        sequence.waiting.appendleft(request)
        if sequence.lane is None:  # its seat was given away with what looked like its last request
            sequence.begun = False
            self._seat(sequence)
        if sequence.lane is not None:
            sequence.lane.decision = None
            self._offer(sequence)
        return sequence

    def end(self, sequence: LiveSequence) -> None:
        """Let no further request join; the seat is free when those that it has are answered."""
        self._end(sequence)
        self._settle(sequence)

    def forget(self, request: InferRequest) -> bool:
        """Remove one waiting request alone, and say whether it was there."""
        sequence = self._homes.get(request)
        if sequence is None or request in sequence.running:
            return False
        del self._homes[request]
        sequence.waiting.remove(request)
        if sequence.lane is not None:
            sequence.lane.decision = None
        if not sequence.begun and not sequence.waiting:
            self._end(sequence)
        self._thin_out(sequence)
        return True

    def drop(self, request: InferRequest) -> Sequence[InferRequest]:
        """End the sequence of a waiting request that nobody wants any more; return it and what must not run without it.

        That is what waits behind it; all of a sequence that has no seat yet.
        """
        sequence = self._homes.get(request)
        if sequence is None or request in sequence.running:
            return ()
        self._end(sequence)
        return self._cut(sequence, 0 if sequence.lane is None else sequence.waiting.index(request))

    def expire(self, now_ns: int) -> list[InferRequest]:
        """Take the seats of sequences that were idle for too long; remove and return what waited too long for a seat."""
        self.look(now_ns)
        while self._idle:
            sequence, since_ns = next(iter(self._idle.items()))
            if since_ns + self._idle_ns > now_ns:
                break
            self.end(sequence)
        if now_ns < self._deadline_ns:
            return []
        overdue = [sequence for sequence in self._backlog if sequence.deadline_ns <= now_ns]
        rejected: list[InferRequest] = []
        for sequence in overdue:
            self._end(sequence)
            rejected += self._cut(sequence, 0)
        self._deadline_ns = min([sequence.deadline_ns for sequence in self._backlog], default=NEVER)
        return rejected

    def due(self, now_ns: int) -> int | None:
        """Return when to call `expire` next, None where nothing is left that could expire."""
        idle_ns = next(iter(self._idle.values()), now_ns) + self._idle_ns
        if self._live:
            return min(idle_ns, self._deadline_ns)
        return self._deadline_ns if self._deadline_ns != NEVER else None

    def look(self, now_ns: int) -> None:
        """Note the time for what happened since the last look."""
        if self._fresh:
            for sequence in self._fresh:
                if not sequence.ready_ns:
                    sequence.ready_ns = now_ns
                if not sequence.open and not sequence.ended:
                    self._idle.setdefault(sequence, now_ns)
            self._fresh.clear()

    def change(self, instances: Sequence[int]) -> None:
        """Have seats at `instances` alone. Sequences that have begun at another one finish there, the others move."""
        for lane in list(self.lanes.values()):
            if lane.instance not in instances and not lane.leaving:
                self._clear(lane)
        for instance in instances:
            if instance not in self.lanes:
                self.lanes[instance] = Lane(instance, self._seats)
                self._free += [(False, seat, instance) for seat in range(self._seats)]
        heapify(self._free)
        self._promote()

    def lose(self, instance: int) -> list[InferRequest]:
        """End the sequences that have begun at `instance`; remove and return what waits in them, up to a request that starts anew.

        The others take free seats at other instances, as far as there are any; no new ones sit there before `restore` while there are.
        """
        lane = self.lanes.get(instance)
        begun = [sequence for sequence in lane.sequences() if sequence.begun] if lane is not None else []
        refused: list[InferRequest] = []
        for sequence in begun:
            starts = (at for at, request in enumerate(sequence.waiting) if request.sequence and request.sequence.start)
            start = next(starts, len(sequence.waiting))
            for _ in range(start):
                refused.append(sequence.waiting.popleft())
                del self._homes[refused[-1]]
            if not sequence.waiting:
                self._end(sequence)
            elif not sequence.running:
                sequence.begun = False  # what starts anew needs nothing of this instance
            self._thin_out(sequence)
        if lane is not None:
            lane.decision = None
            self._mark(lane, down=True)
        return refused

    def count_waiting(self) -> tuple[int, int]:
        """Return how many requests wait in slots, and how many for one."""
        in_slots = sum(len(sequence.waiting) for lane in self.lanes.values() for sequence in lane.sequences())
        return in_slots, sum(len(sequence.waiting) for sequence in self._backlog)

    def restore(self, instance: int) -> None:
        """Treat `instance` as any other again."""
        lane = self.lanes.get(instance)
        if lane is not None:
            self._mark(lane, down=False)

    def pending(self) -> Iterator[InferRequest]:
        """Yield the requests that wait."""
        for lane in self.lanes.values():
            for sequence in lane.sequences():
                yield from sequence.waiting
        for sequence in self._backlog:
            yield from sequence.waiting

    @property
    def live(self) -> Mapping[int | str, LiveSequence]:
        """The sequences that may still get requests, by id."""
        return self._live

    def _seat(self, sequence: LiveSequence) -> None:
        if self._free:
            self._place(sequence)
        else:
            self._backlog[sequence] = None

    def _place(self, sequence: LiveSequence) -> None:
        _, sequence.seat, instance = heappop(self._free)
        sequence.lane = self.lanes[instance]
        sequence.lane.seats[sequence.seat] = sequence
        sequence.deadline_ns = NEVER

    def _mark(self, lane: Lane, down: bool) -> None:
        lane.down = down
        self._any_down = any(each.down for each in self.lanes.values())
        self._free = [
            (down if instance == lane.instance else was, seat, instance) for was, seat, instance in self._free
        ]
        heapify(self._free)
        self._promote()

    def _promote(self) -> None:
        if self._any_down:
            self._move_from_down()
        while self._backlog and self._free:
            sequence = next(iter(self._backlog))
            del self._backlog[sequence]
            self._place(sequence)
            self._offer(sequence)

    def _move_from_down(self) -> None:
        down = [lane for lane in self.lanes.values() if lane.down]
        moving = [each for lane in down for each in lane.sequences() if each.waiting and not each.begun]
        for sequence in sorted(moving, key=lambda each: each.waiting[0].queued_ns):
            if not self._free or self._free[0][0]:
                return
            self._vacate(sequence)
            self._place(sequence)
            self._offer(sequence)

    def _offer(self, sequence: LiveSequence) -> None:
        self._idle.pop(sequence, None)
        lane = sequence.lane
        if lane is not None and sequence not in lane.ready and not (self._one_at_a_time and sequence.running):
            sequence.ready_ns = 0
            self._fresh.append(sequence)
            lane.ready[sequence] = None
            lane.decision = None

    def _limit(self, sequence: LiveSequence, request: InferRequest, now_ns: int) -> None:
        if request.timeout_us:
            sequence.deadline_ns = min(sequence.deadline_ns, now_ns + request.timeout_us * _US)
            self._deadline_ns = min(self._deadline_ns, sequence.deadline_ns)

    def _end(self, sequence: LiveSequence) -> None:
        if not sequence.ended:
            sequence.ended = True
            del self._live[sequence.id]
            self._idle.pop(sequence, None)

    def _settle(self, sequence: LiveSequence) -> None:
        if sequence.waiting:
            self._offer(sequence)
        elif not sequence.running:
            if not sequence.ended:
                self._fresh.append(sequence)
            elif sequence.lane is not None:
                self._leave(sequence)

    def _cut(self, sequence: LiveSequence, start: int) -> list[InferRequest]:
        dropped = list(sequence.waiting)[start:]
        for request in dropped:
            del self._homes[request]
            sequence.waiting.pop()
        self._thin_out(sequence)
        return dropped

    def _thin_out(self, sequence: LiveSequence) -> None:
        if sequence.waiting:
            return
        if sequence.lane is None:
            self._backlog.pop(sequence, None)
            self._end(sequence)
        else:
            sequence.lane.decision = None
            sequence.lane.ready.pop(sequence, None)
            self._settle(sequence)

    def _leave(self, sequence: LiveSequence) -> None:
        lane = self._vacate(sequence)
        if not lane.leaving:
            self._promote()
        elif not lane.sequences():
            del self.lanes[lane.instance]

    def _vacate(self, sequence: LiveSequence) -> Lane:
        lane, sequence.lane = sequence.lane, None
        assert lane is not None, "only who has a seat can leave it: this is a bug"  # noqa: S101
        lane.seats[sequence.seat] = None
        lane.ready.pop(sequence, None)
        lane.decision = None
        if not lane.leaving:
            heappush(self._free, (lane.down, sequence.seat, lane.instance))
        return lane

    def _clear(self, lane: Lane) -> None:
        lane.leaving, lane.decision = True, None
        self._free = [free for free in self._free if free[2] != lane.instance]
        moved = [sequence for sequence in lane.sequences() if not sequence.begun]
        moved.sort(key=lambda sequence: sequence.waiting[0].queued_ns)
        for sequence in moved:
            lane.seats[sequence.seat] = sequence.lane = None
            lane.ready.pop(sequence, None)
        self._backlog = {**dict.fromkeys(moved), **self._backlog}
        if not lane.sequences():
            del self.lanes[lane.instance]
