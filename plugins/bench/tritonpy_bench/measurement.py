"""Measurement of one level of load: windows that repeat until they agree."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from tritonpy_bench.options import BenchOptions
from tritonpy_bench.windows import is_level_complete, is_window_complete, plan
from tritonpy_load_generator.figures.server_share import Reading, ServerShare, statistics_between
from tritonpy_load_generator.figures.snapshot import Snapshot, join_consecutive
from tritonpy_load_generator.options import LoadLevel

Readings = dict[str, Sequence[Reading]]
GRACE_S = 5.0
INTERRUPTED_GRACE_S = 0.5


class Load(Protocol):
    """A load generator, such as the pool of client processes."""

    async def start(self, level: LoadLevel) -> None:
        """Start the load of a level."""

    async def take_snapshot(self) -> Snapshot:
        """Return the counts since the previous snapshot."""

    async def stop(self, grace_s: float) -> None:
        """Stop the load; requests in flight have `grace_s` seconds to finish."""


class MeasuredWindow(msgspec.Struct, frozen=True):
    """The client's counts of one window and the server's statistics for it."""

    counted: Snapshot
    server: tuple[ServerShare, ...]


class MeasuredLevel(msgspec.Struct, frozen=True):
    """All windows of a level and every snapshot since its start."""

    level: float
    windows: tuple[MeasuredWindow, ...]
    snapshots: tuple[Snapshot, ...]
    interrupted: bool


class LevelMeasurement:
    """Measures levels in order.

    `read` blocks and returns the server's statistics, or None if it has none. Every snapshot is
    passed to `on_snapshot(window_number, snapshot)`. Setting `interrupted` ends the measurement
    early and keeps the counts so far.
    """

    def __init__(
        self,
        options: BenchOptions,
        load: Load,
        read: Callable[[], Readings | None],
        on_snapshot: Callable[[int, Snapshot], None],
        interrupted: asyncio.Event,
    ) -> None:
        self._options = options
        self._load = load
        self._read = read
        self._on_snapshot = on_snapshot
        self._interrupted = interrupted
        self._interval_s = plan(options).interval_s

    async def level(self, level: float) -> MeasuredLevel:
        """Measure one level. Raises StartupError if the load cannot be generated."""
        self._snapshots: list[Snapshot] = []
        windows: list[MeasuredWindow] = []
        before = await asyncio.to_thread(self._read)
        await self._load.start(self._options.load_level(level))
        self._due = time.monotonic()
        try:
            while (
                _is_warming_up(snapshot := await self._next_snapshot(1))
                and not self._interrupted.is_set()
            ):
                before = await asyncio.to_thread(self._read)
            first: Snapshot | None = snapshot
            while True:
                counted = await self._window(len(windows) + 1, first)
                after = await asyncio.to_thread(self._read)
                windows.append(MeasuredWindow(counted, _server_shares(before, after)))
                if self._interrupted.is_set() or is_level_complete(
                    self._options, [each.counted for each in windows]
                ):
                    break
                before, first = after, None
        finally:
            await self._load.stop(INTERRUPTED_GRACE_S if self._interrupted.is_set() else GRACE_S)
        return MeasuredLevel(
            level, tuple(windows), tuple(self._snapshots), self._interrupted.is_set()
        )

    async def _window(self, number: int, first: Snapshot | None) -> Snapshot:
        snapshots = [] if first is None else [first]
        while not snapshots or not (
            self._interrupted.is_set() or is_window_complete(self._options, snapshots)
        ):
            snapshots.append(await self._next_snapshot(number))
        return join_consecutive(snapshots)

    async def _next_snapshot(self, number: int) -> Snapshot:
        """Wait until the next snapshot is due, and take it; an interruption ends the wait."""
        self._due = max(self._due + self._interval_s, time.monotonic())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._interrupted.wait(), max(self._due - time.monotonic(), 0))
        snapshot = await self._load.take_snapshot()
        self._snapshots.append(snapshot)
        self._on_snapshot(0 if _is_warming_up(snapshot) else number, snapshot)
        return snapshot


def _is_warming_up(snapshot: Snapshot) -> bool:
    return snapshot.warming and not snapshot.started


def _server_shares(before: Readings | None, after: Readings | None) -> tuple[ServerShare, ...]:
    if before is None or after is None:
        return ()
    return tuple(
        statistics_between(name, before.get(name, ()), after_readings)
        for name, after_readings in after.items()
    )
