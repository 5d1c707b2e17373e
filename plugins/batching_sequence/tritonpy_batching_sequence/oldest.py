"""The oldest strategy: a batch policy batches the next requests of an instance's candidates."""

from __future__ import annotations

from itertools import islice, takewhile

from tritonpy.scheduling import BatchPolicy, Pending, Run
from tritonpy_batching_sequence.slot_group import Decision, SlotGroup
from tritonpy_batching_sequence.strategy import KeyOf, Strategy


class Oldest(Strategy):
    """Lets a batch policy select from the first `max_rows` compatible ready sequences."""

    def __init__(self, policy: BatchPolicy, max_rows: int, key_of: KeyOf | None) -> None:
        self._policy = policy
        self._max_rows = max_rows
        self._key_of = key_of

    def choose(self, group: SlotGroup, now_ns: int) -> Decision:
        """Return the sequences to run, or the time (ns) until which the policy waits."""
        head = list(islice(group.ready, self._max_rows))
        if self._key_of is not None:
            key_of, first_key = self._key_of, self._key_of(head[0])
            head = list(takewhile(lambda sequence: key_of(sequence) == first_key, head))
        requests = [sequence.waiting[0] for sequence in head]
        closed = len(head) == self._max_rows or len(head) < len(group.ready)
        oldest_ns = min([sequence.ready_ns for sequence in head])
        decision = self._policy.plan(
            Pending(requests, [1] * len(head), len(head), oldest_ns, closed), now_ns
        )
        return head[: decision.count] if type(decision) is Run else decision.until_ns
