"""Whether an instance finishes so soon that the event loop had better run it itself: handing over would cost more than the execution does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tritonpy.ipc.blocks import Placed
from tritonpy.types import Batch

# A hand-over to a thread and back takes some 70 us where nothing else happens; the loop itself is busy for longer with the requests of one turn.
QUICK_NS = 200_000
# For several requests, while a thread could execute them and the loop read others: so long, and what the interpreter has to do for each, at most.
TOGETHER_NS, EACH_NS, MOST_NS = 100_000, 12_000, 600_000
SLOW_NS = 1_000_000  # of the processor: the fault of the execution, and not of others who had the processor
ENDLESS_NS = 10_000_000  # who keeps the loop busy for so long does it once
STALLED_NS = 1_000_000_000  # and who stops it for so long, too, though it may have lost the processor
SURE = 16  # executions of a size that were not slow, one after the other, before the loop runs one
_WEIGHT = 0.1  # of the newest execution in a running mean
_ONE = 5  # times what is quick: as much of one execution on the loop counts, which may have lost the processor once
_FORGIVEN = 0.995  # what each execution on the thread leaves of what is held against those on the loop
_TRUST = 64  # times as many executions on the loop make up for one that was slow
_MOST = 1 << 20


class Size(NamedTuple):
    """The class of a batch: how many requests it has and the bytes of their inputs, both as the length of the number in bits."""

    requests: int
    nbytes: int

    @classmethod
    def of(cls, batch: Batch) -> Size:
        """Return the class of `batch`."""
        nbytes = 0
        for request in batch.requests:
            inputs: Any = request.inputs
            if isinstance(inputs, Placed):
                nbytes += inputs.block.signature.nbytes
            else:
                for tensor in inputs.values():
                    nbytes += tensor.nbytes
        return cls(len(batch.requests).bit_length(), nbytes.bit_length())

    @property
    def quick_ns(self) -> int:
        """How long such a batch may take in the mean, to be run by the loop."""
        fewest = 1 << self.requests - 1
        return QUICK_NS if fewest == 1 else min(TOGETHER_NS + EACH_NS * fewest, MOST_NS)


@dataclass(slots=True)
class _Record:
    """The executions of one size: those in a row that were not slow, and the means of their times.

    On the thread it is that of the processor, since an execution may wait for the interpreter there, unless it waited for long; on the loop it is the clock's.
    """

    limit_ns: int
    count: int = 0
    thread_ns: float = 0.0
    loop_ns: float = 0.0

    def add_on_thread(self, busy_ns: int, ns: int) -> None:
        self.count += 1
        cost_ns = busy_ns if ns < SLOW_NS else min(ns, ENDLESS_NS)
        self.thread_ns += (cost_ns - self.thread_ns) * max(_WEIGHT, 1 / self.count)
        self.loop_ns *= _FORGIVEN

    def add_on_loop(self, ns: int) -> None:
        self.count += 1
        self.loop_ns += (min(ns, _ONE * self.limit_ns) - self.loop_ns) * _WEIGHT


class Quickness:
    """Learns from executions; its owner tells it each, from one thread at a time.

    The loop runs an execution where those of its size are quick in the mean and the last SURE of them were not slow. Each slow one on the loop makes the
    instance prove itself for twice as long as before; one that kept the loop busy for ENDLESS_NS, or stopped it for STALLED_NS, ends the matter.
    """

    def __init__(self) -> None:
        self.hopeful = False  # some size is sure, perhaps that of the next batch
        self._over = False
        self._records: dict[Size, _Record] = {}
        self._sure = SURE
        self._kept = 0  # executions on the loop since the last slow one

    def sure(self, size: Size) -> bool:
        """Say whether a batch of that size will be quick."""
        record = self._records.get(size)
        return self.hopeful and record is not None and self._is_sure(record)

    def took(self, size: Size, busy_ns: int, ns: int, on_loop: bool) -> None:
        """Learn what a batch of that size took of the processor and on the clock."""
        if self._over:
            return
        if on_loop and (busy_ns > SLOW_NS or ns > ENDLESS_NS):
            self._disappointed(busy_ns, ns)
            return
        if busy_ns > SLOW_NS:
            self._records.pop(size, None)
            self.hopeful = any(map(self._is_sure, self._records.values()))
            return
        record = self._records.get(size)
        if record is None:
            record = self._records[size] = _Record(size.quick_ns)
        if not on_loop:
            record.add_on_thread(busy_ns, ns)
            self.hopeful = self.hopeful or self._is_sure(record)
        else:
            record.add_on_loop(ns)
            self._kept += 1
            if self._kept >= _TRUST * self._sure:
                self._kept, self._sure = 0, max(self._sure // 2, SURE)

    def give_up(self) -> None:
        """Let the loop run nothing any more."""
        self.hopeful, self._over = False, True

    def _is_sure(self, record: _Record) -> bool:
        limit_ns = record.limit_ns
        return record.count >= self._sure and record.thread_ns <= limit_ns and record.loop_ns <= 2 * limit_ns

    def _disappointed(self, busy_ns: int, ns: int) -> None:
        self._records.clear()
        self.hopeful = False
        self._kept, self._sure = 0, min(2 * self._sure, _MOST)
        if busy_ns > ENDLESS_NS or ns > STALLED_NS:
            self.give_up()
