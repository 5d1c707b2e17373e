"""Targets of sequences: a sequence stays on the target where it began."""

from __future__ import annotations

from tritonpy import SequenceInfo
from tritonpy_traffic.spec import Target


class SequenceAffinity:
    """Maps the sequences of one route to targets. The caller holds the route's lock.

    A sequence without a request for `idle_ns` is removed.
    """

    def __init__(self, idle_ns: int) -> None:
        self._idle_ns = idle_ns
        self._targets: dict[int | str, tuple[Target, int]] = {}  # in order of their last requests

    def __len__(self) -> int:
        return len(self._targets)

    def find(self, sequence: SequenceInfo, now_ns: int) -> Target | None:
        """Return the target of `sequence`, None for a new or unknown one."""
        entry = self._targets.get(sequence.id)
        if sequence.start or entry is None or now_ns - entry[1] > self._idle_ns:
            return None
        return entry[0]

    def record(self, sequence: SequenceInfo, target: Target, now_ns: int) -> None:
        """Record that `target` accepted a request of `sequence`."""
        self._targets.pop(sequence.id, None)
        if not sequence.end:
            self._targets[sequence.id] = target, now_ns
        self._remove_idle(now_ns)

    def _remove_idle(self, now_ns: int) -> None:
        while self._targets:
            oldest = next(iter(self._targets))
            if now_ns - self._targets[oldest][1] <= self._idle_ns:
                return
            del self._targets[oldest]
