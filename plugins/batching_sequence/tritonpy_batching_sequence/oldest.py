"""The oldest strategy: the candidates of an instance queue for a batch, each with its next request."""

from __future__ import annotations

from itertools import islice, takewhile

from tritonpy import BatchPolicy, Pending, Run
from tritonpy_batching_sequence.lane import Decision, Lane
from tritonpy_batching_sequence.strategy import KeyOf, Strategy


class Oldest(Strategy):
    """A batch policy decides about the head of the line: those who are alike, `max_rows` at most."""

    def __init__(self, policy: BatchPolicy, max_rows: int, key_of: KeyOf | None) -> None:
        self._policy = policy
        self._max_rows = max_rows
        self._key_of = key_of

    def choose(self, lane: Lane, now_ns: int) -> Decision:
        """Return the first of the line, or what the policy waits for."""
        head = list(islice(lane.ready, self._max_rows))
        if self._key_of is not None:
            key_of, wanted = self._key_of, self._key_of(head[0])
            head = list(takewhile(lambda sequence: key_of(sequence) == wanted, head))
        requests = [sequence.waiting[0] for sequence in head]
        closed = len(head) == self._max_rows or len(head) < len(lane.ready)
        oldest_ns = min([sequence.ready_ns for sequence in head])
        decision = self._policy.plan(Pending(requests, [1] * len(head), len(head), oldest_ns, closed), now_ns)
        return head[: decision.count] if type(decision) is Run else decision.until_ns
