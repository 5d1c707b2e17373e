"""Whether an instance finishes so soon that the event loop had better run it itself: handing over would cost more than the execution does."""

from __future__ import annotations

from dataclasses import dataclass

from tritonpy.types import InferRequest

# A hand-over to a thread and back takes some 70 us where nothing else happens; the loop itself is busy for longer with the requests of one turn.
QUICK_NS = 200_000
SLOW_NS = 1_000_000  # of the processor: the fault of the execution, and not of others who had the processor
ENDLESS_NS = 10_000_000  # who keeps the loop busy for so long does it once
STALLED_NS = 1_000_000_000  # and who stops it for so long, too, though it may have lost the processor
SURE = 16  # executions of a size that were not slow, one after the other, before the loop runs one
_WEIGHT = 0.1  # of the newest execution in the running mean
_TRUST = 64  # times as many executions on the loop make up for one that was slow
_MOST = 1 << 20


@dataclass(slots=True)
class _Record:
    """The executions of one size: those in a row that were not slow, and the mean of their times."""

    count: int = 0
    mean_ns: float = 0.0


class Quickness:
    """Learns from executions of single requests; its owner tells it each, from one thread at a time.

    The loop runs an execution where those of its size are quick in the mean and the last SURE of them were not slow. Each slow one on the loop makes the
    instance prove itself for twice as long as before; one that kept the loop busy for ENDLESS_NS, or stopped it for STALLED_NS, ends the matter.
    """

    def __init__(self) -> None:
        self.hopeful = False  # some size is sure, perhaps that of the next request
        self._over = False
        self._records: dict[int, _Record] = {}
        self._sure = SURE
        self._kept = 0  # executions on the loop since the last slow one

    def sure(self, size: int) -> bool:
        """Say whether a single request of that size (`size_of`) will be quick."""
        record = self._records.get(size)
        return record is not None and self._is_sure(record)

    def took(self, size: int, busy_ns: int, ns: int, on_loop: bool) -> None:
        """Learn what a single request of that size took of the processor and on the clock."""
        if self._over:
            return
        if busy_ns > SLOW_NS or (on_loop and ns > ENDLESS_NS):
            self._disappointed(busy_ns, ns, on_loop)
            return
        record = self._records.get(size)
        if record is None:
            record = self._records[size] = _Record()
        record.count += 1
        record.mean_ns += (min(ns, SLOW_NS) - record.mean_ns) * max(_WEIGHT, 1 / record.count)
        if not on_loop:
            self.hopeful = self.hopeful or self._is_sure(record)
        else:
            self._kept += 1
            if self._kept >= _TRUST * self._sure:
                self._kept, self._sure = 0, max(self._sure // 2, SURE)

    def give_up(self) -> None:
        """Let the loop run nothing any more."""
        self.hopeful, self._over = False, True

    def _is_sure(self, record: _Record) -> bool:
        return record.count >= self._sure and record.mean_ns <= QUICK_NS

    def _disappointed(self, busy_ns: int, ns: int, on_loop: bool) -> None:
        self._records.clear()
        self.hopeful = False
        if on_loop:
            self._kept, self._sure = 0, min(2 * self._sure, _MOST)
            if busy_ns > ENDLESS_NS or ns > STALLED_NS:
                self.give_up()


def size_of(request: InferRequest) -> int:
    """Return the class of a request: the bytes of its inputs, rounded to a power of two."""
    nbytes = 0
    for tensor in request.inputs.values():
        nbytes += tensor.nbytes
    return nbytes.bit_length()
