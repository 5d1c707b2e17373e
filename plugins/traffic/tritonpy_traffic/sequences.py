"""Which target has which sequence: one that began somewhere stays there."""

from __future__ import annotations

from tritonpy import SequenceInfo
from tritonpy_traffic.spec import Target


class Sequences:
    """The sequences of one route; the caller holds the route's lock. One that said nothing for `idle_ns` is forgotten."""

    def __init__(self, idle_ns: int) -> None:
        self._idle_ns = idle_ns
        self._places: dict[int | str, tuple[Target, int]] = {}  # in the order of their last requests

    def __len__(self) -> int:
        return len(self._places)

    def find(self, sequence: SequenceInfo, now_ns: int) -> Target | None:
        """Return where `sequence` lives; None for one that begins, or that nobody knows."""
        place = self._places.get(sequence.id)
        if sequence.start or place is None or now_ns - place[1] > self._idle_ns:
            return None
        return place[0]

    def note(self, sequence: SequenceInfo, target: Target, now_ns: int) -> None:
        """Take note that `target` took a request of `sequence`."""
        self._places.pop(sequence.id, None)
        if not sequence.end:
            self._places[sequence.id] = target, now_ns
        self._forget_idle(now_ns)

    def _forget_idle(self, now_ns: int) -> None:
        while self._places:
            oldest = next(iter(self._places))
            if now_ns - self._places[oldest][1] <= self._idle_ns:
                return
            del self._places[oldest]
