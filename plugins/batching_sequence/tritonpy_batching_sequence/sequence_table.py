"""Live sequences, their slots and the backlog. Callers provide the lock and the time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush

from tritonpy import InferRequest
from tritonpy_batching_sequence.live_sequence import NEVER, LiveSequence
from tritonpy_batching_sequence.slot_group import SlotGroup

_US = 1_000


class MissingStart(Exception):
    """A request without the START flag whose sequence is unknown."""


class SequenceTable:
    """Assigns each sequence to the lowest free slot, or to the backlog until a slot is free.

    `slots` is the number of slots per instance. With `one_at_a_time`, a sequence's next request may
    run when the previous one has its final response. Otherwise it may run as soon as the previous
    one was pulled. A sequence without requests loses its slot after `idle_ns`. The caller responds
    to the requests that methods return.
    """

    def __init__(self, slots: int, idle_ns: int, one_at_a_time: bool) -> None:
        self.groups: dict[int, SlotGroup] = {}
        self._slots_per_group = slots
        self._idle_ns = idle_ns
        self._one_at_a_time = one_at_a_time
        self._live: dict[int | str, LiveSequence] = {}
        # The sequence of every waiting or running request.
        self._sequences: dict[InferRequest, LiveSequence] = {}
        self._free: list[tuple[bool, int, int]] = []  # (instance is down, slot, instance)
        self._has_down_groups = False
        self._backlog: dict[LiveSequence, None] = {}
        self._deadline_ns = NEVER  # the earliest deadline of the backlog
        self._idle: dict[LiveSequence, int] = {}  # idle sequences by start time, oldest first
        # Sequences that became idle or ready since the last `stamp`
        self._unstamped: list[LiveSequence] = []

    def sequence_of(self, request: InferRequest) -> LiveSequence | None:
        """Return the sequence of a waiting or running request, or None."""
        return self._sequences.get(request)

    def add(
        self,
        request: InferRequest,
        id: int | str,  # noqa: A002
        start: bool,
        end: bool,
        now_ns: int,
    ) -> LiveSequence:
        """Append `request` to its sequence. Raises `MissingStart`."""
        sequence = self._live.get(id)
        if sequence is None:
            if not start:
                raise MissingStart
            sequence = self._live[id] = LiveSequence(id)
            self._assign_slot(sequence)
        if end:
            self._end(sequence)
        self._sequences[request] = sequence
        sequence.waiting.append(request)
        if sequence.group is None:
            self._set_deadline(sequence, request, now_ns)
        else:
            self._mark_ready(sequence)
        return sequence

    def pull(self, sequence: LiveSequence) -> InferRequest:
        """Remove and return the next request of a ready sequence."""
        group, request = sequence.group, sequence.waiting.popleft()
        assert group is not None, "only a sequence with a slot is ready: this is a bug"  # noqa: S101
        sequence.running.add(request)
        sequence.begun = True
        group.decision = None
        if self._one_at_a_time or not sequence.waiting:
            del group.ready[sequence]
        if sequence.ended and not sequence.waiting and not self._one_at_a_time:
            self._free_slot(sequence)
        return request

    def release(self, request: InferRequest) -> LiveSequence | None:
        """Record that a pulled request is finished.

        Return its sequence, None if it was not pulled.
        """
        sequence = self._sequences.get(request)
        if sequence is None or request not in sequence.running:
            return None
        del self._sequences[request]
        sequence.running.remove(request)
        self._offer_or_free(sequence)
        return sequence

    def put_back(self, request: InferRequest) -> LiveSequence | None:
        """Put a pulled request back at the front of its sequence.

        Returns the sequence, None if the request was not pulled.
        """
        sequence = self._sequences.get(request)
        if sequence is None or request not in sequence.running:
            return None
        sequence.running.remove(request)
        sequence.waiting.appendleft(request)
        if sequence.group is None:  # `pull` of its last request has released the slot
            sequence.begun = False
            self._assign_slot(sequence)
        if sequence.group is not None:
            sequence.group.decision = None
            self._mark_ready(sequence)
        return sequence

    def end(self, sequence: LiveSequence) -> None:
        """Accept no further requests. The slot is released when the last request finishes."""
        self._end(sequence)
        self._offer_or_free(sequence)

    def remove(self, request: InferRequest) -> bool:
        """Remove one waiting request. Return whether it was waiting."""
        sequence = self._sequences.get(request)
        if sequence is None or request in sequence.running:
            return False
        del self._sequences[request]
        sequence.waiting.remove(request)
        if sequence.group is not None:
            sequence.group.decision = None
        if not sequence.begun and not sequence.waiting:
            self._end(sequence)
        self._remove_if_empty(sequence)
        return True

    def cancel(self, request: InferRequest) -> Sequence[InferRequest]:
        """End the sequence of a waiting request. Return the removed requests.

        These are the request and those behind it, or all requests if the sequence has no slot yet.
        """
        sequence = self._sequences.get(request)
        if sequence is None or request in sequence.running:
            return ()
        self._end(sequence)
        return self._remove_waiting(
            sequence, 0 if sequence.group is None else sequence.waiting.index(request)
        )

    def expire(self, now_ns: int) -> list[InferRequest]:
        """Release the slots of idle sequences.

        Remove and return requests that waited too long for a slot.
        """
        self.stamp(now_ns)
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
            rejected += self._remove_waiting(sequence, 0)
        self._deadline_ns = min([sequence.deadline_ns for sequence in self._backlog], default=NEVER)
        return rejected

    def due(self, now_ns: int) -> int | None:
        """Return when to call `expire` next, None if nothing can expire."""
        idle_ns = next(iter(self._idle.values()), now_ns) + self._idle_ns
        if self._live:
            return min(idle_ns, self._deadline_ns)
        return self._deadline_ns if self._deadline_ns != NEVER else None

    def stamp(self, now_ns: int) -> None:
        """Record `now_ns` for sequences that became ready or idle since the last call."""
        if self._unstamped:
            for sequence in self._unstamped:
                if not sequence.ready_ns:
                    sequence.ready_ns = now_ns
                if not sequence.has_requests and not sequence.ended:
                    self._idle.setdefault(sequence, now_ns)
            self._unstamped.clear()

    def set_instances(self, instances: Sequence[int]) -> None:
        """Assign slots only at `instances`.

        Sequences that have begun at a removed instance finish there. The others move.
        """
        for group in list(self.groups.values()):
            if group.instance not in instances and not group.draining:
                self._drain(group)
        for instance in instances:
            if instance not in self.groups:
                self.groups[instance] = SlotGroup(instance, self._slots_per_group)
                self._free += [(False, slot, instance) for slot in range(self._slots_per_group)]
        heapify(self._free)
        self._promote()

    def mark_down(self, instance: int) -> list[InferRequest]:
        """End the sequences that have begun at `instance`; return their waiting requests.

        The returned requests are removed. Requests from the next START flag on are kept, because
        they restart the sequence. Other sequences move to free slots of other instances. Until
        `mark_up`, new sequences use this instance only if the others have no free slot.
        """
        group = self.groups.get(instance)
        begun = (
            [sequence for sequence in group.sequences() if sequence.begun]
            if group is not None
            else []
        )
        refused: list[InferRequest] = []
        for sequence in begun:
            is_start = (
                at
                for at, request in enumerate(sequence.waiting)
                if request.sequence and request.sequence.start
            )
            start = next(is_start, len(sequence.waiting))
            for _ in range(start):
                refused.append(sequence.waiting.popleft())
                del self._sequences[refused[-1]]
            if not sequence.waiting:
                self._end(sequence)
            elif not sequence.running:
                sequence.begun = False  # a restarted sequence needs no state of this instance
            self._remove_if_empty(sequence)
        if group is not None:
            group.decision = None
            self._set_down(group, down=True)
        return refused

    def count_waiting(self) -> tuple[int, int]:
        """Return how many requests wait in slots and how many wait in the backlog."""
        in_slots = sum(
            len(sequence.waiting)
            for group in self.groups.values()
            for sequence in group.sequences()
        )
        return in_slots, sum(len(sequence.waiting) for sequence in self._backlog)

    def mark_up(self, instance: int) -> None:
        """Assign sequences to `instance` again."""
        group = self.groups.get(instance)
        if group is not None:
            self._set_down(group, down=False)

    def pending(self) -> Iterator[InferRequest]:
        """Yield the waiting requests."""
        for group in self.groups.values():
            for sequence in group.sequences():
                yield from sequence.waiting
        for sequence in self._backlog:
            yield from sequence.waiting

    @property
    def live(self) -> Mapping[int | str, LiveSequence]:
        """Sequences that accept further requests, by id."""
        return self._live

    def _assign_slot(self, sequence: LiveSequence) -> None:
        if self._free:
            self._occupy_slot(sequence)
        else:
            self._backlog[sequence] = None

    def _occupy_slot(self, sequence: LiveSequence) -> None:
        _, sequence.slot, instance = heappop(self._free)
        sequence.group = self.groups[instance]
        sequence.group.slots[sequence.slot] = sequence
        sequence.deadline_ns = NEVER

    def _set_down(self, group: SlotGroup, down: bool) -> None:
        group.down = down
        self._has_down_groups = any(each.down for each in self.groups.values())
        self._free = [
            (down if instance == group.instance else was, slot, instance)
            for was, slot, instance in self._free
        ]
        heapify(self._free)
        self._promote()

    def _promote(self) -> None:
        if self._has_down_groups:
            self._move_from_down_groups()
        while self._backlog and self._free:
            sequence = next(iter(self._backlog))
            del self._backlog[sequence]
            self._occupy_slot(sequence)
            self._mark_ready(sequence)

    def _move_from_down_groups(self) -> None:
        down = [group for group in self.groups.values() if group.down]
        moving = [
            each for group in down for each in group.sequences() if each.waiting and not each.begun
        ]
        for sequence in sorted(moving, key=lambda each: each.waiting[0].queued_ns):
            if not self._free or self._free[0][0]:
                return
            self._clear_slot(sequence)
            self._occupy_slot(sequence)
            self._mark_ready(sequence)

    def _mark_ready(self, sequence: LiveSequence) -> None:
        self._idle.pop(sequence, None)
        group = sequence.group
        if (
            group is not None
            and sequence not in group.ready
            and not (self._one_at_a_time and sequence.running)
        ):
            sequence.ready_ns = 0
            self._unstamped.append(sequence)
            group.ready[sequence] = None
            group.decision = None

    def _set_deadline(self, sequence: LiveSequence, request: InferRequest, now_ns: int) -> None:
        if request.timeout_us:
            sequence.deadline_ns = min(sequence.deadline_ns, now_ns + request.timeout_us * _US)
            self._deadline_ns = min(self._deadline_ns, sequence.deadline_ns)

    def _end(self, sequence: LiveSequence) -> None:
        if not sequence.ended:
            sequence.ended = True
            del self._live[sequence.id]
            self._idle.pop(sequence, None)

    def _offer_or_free(self, sequence: LiveSequence) -> None:
        if sequence.waiting:
            self._mark_ready(sequence)
        elif not sequence.running:
            if not sequence.ended:
                self._unstamped.append(sequence)
            elif sequence.group is not None:
                self._free_slot(sequence)

    def _remove_waiting(self, sequence: LiveSequence, start: int) -> list[InferRequest]:
        dropped = list(sequence.waiting)[start:]
        for request in dropped:
            del self._sequences[request]
            sequence.waiting.pop()
        self._remove_if_empty(sequence)
        return dropped

    def _remove_if_empty(self, sequence: LiveSequence) -> None:
        if sequence.waiting:
            return
        if sequence.group is None:
            self._backlog.pop(sequence, None)
            self._end(sequence)
        else:
            sequence.group.decision = None
            sequence.group.ready.pop(sequence, None)
            self._offer_or_free(sequence)

    def _free_slot(self, sequence: LiveSequence) -> None:
        group = self._clear_slot(sequence)
        if not group.draining:
            self._promote()
        elif not group.sequences():
            del self.groups[group.instance]

    def _clear_slot(self, sequence: LiveSequence) -> SlotGroup:
        group, sequence.group = sequence.group, None
        assert group is not None, "only a sequence with a slot can release it: this is a bug"  # noqa: S101
        group.slots[sequence.slot] = None
        group.ready.pop(sequence, None)
        group.decision = None
        if not group.draining:
            heappush(self._free, (group.down, sequence.slot, group.instance))
        return group

    def _drain(self, group: SlotGroup) -> None:
        group.draining, group.decision = True, None
        self._free = [free for free in self._free if free[2] != group.instance]
        moved = [sequence for sequence in group.sequences() if not sequence.begun]
        moved.sort(key=lambda sequence: sequence.waiting[0].queued_ns)
        for sequence in moved:
            group.slots[sequence.slot] = sequence.group = None
            group.ready.pop(sequence, None)
        self._backlog = {**dict.fromkeys(moved), **self._backlog}
        if not group.sequences():
            del self.groups[group.instance]
