"""The load of one level, in one client process."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

from tritonpy_load_generator.client.connections import Connections
from tritonpy_load_generator.client.shares import share_of
from tritonpy_load_generator.figures.snapshot import Snapshot
from tritonpy_load_generator.inputs.corpus import Corpus
from tritonpy_load_generator.loops.arrivals import (
    client_arrivals,
    constant_arrivals,
    poisson_arrivals,
    read_intervals,
    spaced_arrivals,
)
from tritonpy_load_generator.loops.closed_loop import ClosedLoop
from tritonpy_load_generator.loops.jobs import (
    JobSource,
    PlainJobSource,
    SequenceJobSource,
    sequence_ids,
    sequence_lengths,
)
from tritonpy_load_generator.loops.loop import Loop, RequestBudget
from tritonpy_load_generator.loops.open_loop import OpenLoop
from tritonpy_load_generator.loops.precise_timer import PreciseTimer
from tritonpy_load_generator.loops.process_clocks import read_process_clocks
from tritonpy_load_generator.loops.request_recorder import RequestRecorder
from tritonpy_load_generator.options import LoadLevel, LoadOptions
from tritonpy_load_generator.target.description import open_control
from tritonpy_load_generator.target.metadata import TargetDescription
from tritonpy_load_generator.wire.regions import ClientRegions

_SEQUENCE_LENGTH = 20


class ClientLoad:
    """The load of client `client_index` of `client_count` at one level.

    The order of calls is `connect`, `go`, any number of `take_snapshot`, and `stop`.
    """

    def __init__(
        self,
        target: TargetDescription,
        options: LoadOptions,
        corpus: Corpus,
        level: LoadLevel,
        client_index: int,
        client_count: int,
    ) -> None:
        self._target, self._options, self._corpus = target, options, corpus
        self._level, self._client_index, self._client_count = level, client_index, client_count
        self._recorder = RequestRecorder(time.monotonic_ns, read_process_clocks)
        self._timer: PreciseTimer | None = None
        self._regions: ClientRegions | None = None
        self._connections: Connections | None = None
        self._loop: Loop | None = None

    async def connect(self) -> None:
        """Register shared memory and open connections. Raises OSError and StartupError."""
        slot_count = self._slot_count()
        if self._options.shared_memory == "system" and slot_count:
            self._regions = await asyncio.to_thread(self._share_memory, slot_count)
        self._connections = Connections(
            self._target, self._options, self._corpus, self._regions, slot_count
        )
        if not self._level.open_loop:
            await self._connections.open()

    def go(self, begin_ns: int) -> None:
        """Start sending at `begin_ns` of the monotonic clock."""
        assert self._connections is not None  # noqa: S101  connect() comes first
        self._recorder = RequestRecorder(time.monotonic_ns, read_process_clocks, begin_ns)
        event_loop = asyncio.get_running_loop()
        common = (
            self._connections.senders,
            self._jobs(),
            self._recorder,
            self._budget(),
            time.monotonic_ns,
            event_loop.call_later,
        )
        if not self._level.open_loop:
            self._loop = ClosedLoop(*common)
            event_loop.call_later(max(begin_ns - time.monotonic_ns(), 0) / 1e9, self._loop.start)
        elif self._connections.senders:
            timer = self._timer = PreciseTimer(event_loop)
            opened = self._loop = OpenLoop(
                *common, arrivals=self._arrivals(), begin_ns=begin_ns, wake_at=timer.at
            )
            opened.start()

    def take_snapshot(self) -> Snapshot:
        """Return the counts since the previous snapshot."""
        loop = self._loop
        return self._recorder.take_snapshot(
            warming=loop is not None and loop.warming, finished=loop is None or loop.finished
        )

    async def stop(self, grace_s: float) -> None:
        """Stop sending, wait `grace_s` for requests in flight, close connections, free memory."""
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

    def _slot_count(self) -> int:
        """Return the maximum number of requests in flight of this client."""
        options = self._options
        if not self._level.open_loop:
            return share_of(int(self._level.value), self._client_index, self._client_count)
        most = options.num_of_sequences if self._target.model.sequence else options.max_in_flight
        return share_of(most, self._client_index, self._client_count)

    def _share_memory(self, slot_count: int) -> ClientRegions:
        return ClientRegions(
            open_control(self._options), self._target.model, self._options, self._corpus, slot_count
        )

    def _jobs(self) -> JobSource:
        if not self._target.model.sequence:
            return PlainJobSource(len(self._corpus.steps))
        options = self._options
        base = options.sequence_length or (0 if self._corpus.from_files else _SEQUENCE_LENGTH)
        lengths = (
            repeat(0)
            if not base
            else sequence_lengths(
                base, options.sequence_length_variation, options.seed + self._client_index
            )
        )
        return SequenceJobSource(
            self._corpus.streams,
            lengths,
            sequence_ids(*options.sequence_id_range, self._client_index, self._client_count),
        )

    def _budget(self) -> RequestBudget:
        warmup = share_of(
            self._options.warmup_request_count, self._client_index, self._client_count
        )
        if not self._options.request_count:
            return RequestBudget(warmup)
        return RequestBudget(
            warmup, share_of(self._options.request_count, self._client_index, self._client_count)
        )

    def _arrivals(self) -> Iterator[int]:
        level, file = self._level, self._options.request_intervals
        if level.arrivals == "intervals" and file is not None:
            whole = spaced_arrivals(read_intervals(Path(file)))
        elif level.arrivals == "poisson":
            whole = poisson_arrivals(level.value, level.seed)
        else:
            whole = constant_arrivals(level.value)
        return client_arrivals(whole, self._client_index, self._client_count)
