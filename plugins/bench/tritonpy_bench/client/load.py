"""The load of one level, in one client process."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

from tritonpy_bench.client.connections import Connections
from tritonpy_bench.client.shares import share_of
from tritonpy_bench.figures.snapshot import Snapshot
from tritonpy_bench.inputs.corpus import Corpus
from tritonpy_bench.load.arrivals import constant, dealt, poisson, read_intervals, spaced
from tritonpy_bench.load.closed_loop import ClosedLoop
from tritonpy_bench.load.jobs import Jobs, PlainJobs, SequenceJobs, sequence_ids, sequence_lengths
from tritonpy_bench.load.ledger import Ledger
from tritonpy_bench.load.loop import Budget, Loop
from tritonpy_bench.load.open_loop import OpenLoop
from tritonpy_bench.load.precise_timer import PreciseTimer
from tritonpy_bench.load.process_clocks import spent
from tritonpy_bench.options import BenchOptions
from tritonpy_bench.target.describing import open_control
from tritonpy_bench.target.facts import TargetFacts
from tritonpy_bench.wire.regions import Regions

_SEQUENCE_LENGTH = 20


class Load:
    """Client `hand` of `hands` at one level: `connect`, `go`, any number of looks, `stop`."""

    def __init__(
        self, facts: TargetFacts, options: BenchOptions, corpus: Corpus, level: float, hand: int, hands: int
    ) -> None:
        self._facts, self._options, self._corpus = facts, options, corpus
        self._level, self._hand, self._hands = level, hand, hands
        self._ledger = Ledger(time.monotonic_ns, spent)
        self._timer: PreciseTimer | None = None
        self._regions: Regions | None = None
        self._connections: Connections | None = None
        self._loop: Loop | None = None

    async def connect(self) -> None:
        """Register memory and open connections. Raises OSError and StartupError."""
        places = self._places()
        if self._options.shared_memory == "system" and places:
            self._regions = await asyncio.to_thread(self._share_memory, places)
        self._connections = Connections(self._facts, self._options, self._corpus, self._regions, places)
        if not self._options.open_loop:
            await self._connections.open()

    def go(self, begin_ns: int) -> None:
        """Begin."""
        assert self._connections is not None  # noqa: S101  connect() comes first
        self._ledger = Ledger(time.monotonic_ns, spent, begin_ns)
        event_loop = asyncio.get_running_loop()
        common = (
            self._connections.carriers,
            self._jobs(),
            self._ledger,
            self._budget(),
            time.monotonic_ns,
            event_loop.call_later,
        )
        if not self._options.open_loop:
            self._loop = ClosedLoop(*common)
            event_loop.call_later(max(begin_ns - time.monotonic_ns(), 0) / 1e9, self._loop.start)
        elif self._connections.carriers:
            timer = self._timer = PreciseTimer(event_loop)
            opened = self._loop = OpenLoop(*common, arrivals=self._arrivals(), begin_ns=begin_ns, wake_at=timer.at)
            opened.start()

    def look(self) -> Snapshot:
        """Return what was counted since the last look."""
        loop = self._loop
        return self._ledger.take(warming=loop is not None and loop.warming, finished=loop is None or loop.finished)

    async def stop(self, grace_s: float) -> None:
        """Begin no more, wait for what is in flight, hang up, give the memory back."""
        if self._loop is not None:
            quiet = asyncio.Event()
            self._loop.stop(quiet.set)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(quiet.wait(), grace_s)
        if self._timer is not None:
            self._timer.close()
        if self._connections is not None:
            await self._connections.close()
        if self._regions is not None:
            await asyncio.to_thread(self._regions.close)

    def _places(self) -> int:
        """Return how many requests this client may have in flight."""
        options = self._options
        if not options.open_loop:
            return share_of(int(self._level), self._hand, self._hands)
        most = options.num_of_sequences if self._facts.model.sequence else options.max_in_flight
        return share_of(most, self._hand, self._hands)

    def _share_memory(self, places: int) -> Regions:
        return Regions(open_control(self._options), self._facts.model, self._options, self._corpus, places)

    def _jobs(self) -> Jobs:
        if not self._facts.model.sequence:
            return PlainJobs(len(self._corpus.steps))
        options = self._options
        base = options.sequence_length or (0 if self._corpus.from_files else _SEQUENCE_LENGTH)
        lengths = (
            repeat(0)
            if not base
            else sequence_lengths(base, options.sequence_length_variation, options.seed + self._hand)
        )
        return SequenceJobs(
            self._corpus.streams, lengths, sequence_ids(*options.sequence_id_range, self._hand, self._hands)
        )

    def _budget(self) -> Budget:
        warmup = share_of(self._options.warmup_request_count, self._hand, self._hands)
        if not self._options.request_count:
            return Budget(warmup)
        return Budget(warmup, share_of(self._options.request_count, self._hand, self._hands))

    def _arrivals(self) -> Iterator[int]:
        options = self._options
        if options.request_intervals is not None:
            whole = spaced(read_intervals(Path(options.request_intervals)))
        elif options.request_distribution == "poisson":
            whole = poisson(self._level, options.seed)
        else:
            whole = constant(self._level)
        return dealt(whole, self._hand, self._hands)
