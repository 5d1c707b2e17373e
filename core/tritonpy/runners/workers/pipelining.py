"""How many executions a worker may hold at once."""

from __future__ import annotations

# Work that waits inside a worker cannot go to an instance that becomes free: half a millisecond of it is all that is risked.
_HORIZON_NS = 500_000
_MOST = 32
# Where there is no other instance nothing can be lost but the place in the scheduler's queue: one more is carried over while the worker executes.
_SHORT_NS = 10_000_000
_WEIGHT = 0.2  # of the newest execution in the running mean


class Pipelining:
    """One at a time, except for executions so short that carrying them one by one would cost more than they do.

    `alone`: there is no other instance at present. `suspended`: a worker of the model died a moment ago, and what waits behind an execution would
    be lost with the next. Only where a batch that waits cannot grow (`Scheduler.prefetch`): otherwise waiting is what makes batches.
    """

    def __init__(self, prefetch: bool, alone: bool = False) -> None:
        self._prefetch = prefetch
        self.alone = alone
        self.suspended = False
        self._mean_ns = 0.0
        self.depth = 1

    def took(self, ns: int) -> None:
        """Learn what an execution took."""
        if not self._prefetch:
            return
        self._mean_ns = ns if not self._mean_ns else self._mean_ns + _WEIGHT * (ns - self._mean_ns)
        least = 2 if self.alone and self._mean_ns < _SHORT_NS else 1
        self.depth = max(least, min(_MOST, int(_HORIZON_NS / max(self._mean_ns, 1.0))))

    def share(self, waiting: int, spare: int) -> int:
        """Return how many executions the worker may hold while `waiting` requests wait and `spare` other instances have nothing to do.

        Nothing is given early that another instance could begin: however quick executions were, the present one may be the one that is not.
        """
        return min(self.depth, max(1, -(-waiting // (1 + spare)))) if spare else self.depth
