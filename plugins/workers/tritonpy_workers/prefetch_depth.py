"""The number of executions that a worker may hold at once."""

from __future__ import annotations

# The longest total duration of prefetched executions, which cannot move to an instance that
# becomes idle.
_MAX_PREFETCH_NS = 500_000
_MAX_DEPTH = 32
# The only instance of a model gets one execution ahead if executions are shorter than this. The
# only cost is that the scheduler cannot reorder that execution any more.
_SHORT_NS = 10_000_000
_WEIGHT = 0.2  # of the newest execution in a moving average


class PrefetchDepth:
    """The number of executions that a worker may hold: 1, or more if executions are short.

    `is_only_instance` is set if there is no other instance. `suspended` is set for a while after a
    worker has died, because prefetched requests would be lost with the next one. Prefetching is
    allowed only where a waiting batch cannot grow (`Scheduler.prefetch`). Otherwise waiting makes
    batches larger.
    """

    def __init__(self, prefetch: bool, is_only_instance: bool = False) -> None:
        self._prefetch = prefetch
        self.is_only_instance = is_only_instance
        self.suspended = False
        self._mean_ns = 0.0
        self.depth = 1

    def record(self, ns: int) -> None:
        """Record the duration of an execution."""
        if not self._prefetch:
            return
        self._mean_ns = ns if not self._mean_ns else self._mean_ns + _WEIGHT * (ns - self._mean_ns)
        least = 2 if self.is_only_instance and self._mean_ns < _SHORT_NS else 1
        self.depth = max(least, min(_MAX_DEPTH, int(_MAX_PREFETCH_NS / max(self._mean_ns, 1.0))))

    def share(self, waiting: int, idle: int) -> int:
        """Return the depth while `waiting` requests wait and `idle` other instances are idle.

        A request that an idle instance could begin is not prefetched: the current execution may be
        slower than the previous ones.
        """
        return min(self.depth, max(1, -(-waiting // (1 + idle)))) if idle else self.depth
