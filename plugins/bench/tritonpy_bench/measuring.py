"""Measures one level: windows until they agree."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from tritonpy_bench.figures.server_share import Reading, ServerShare, share
from tritonpy_bench.figures.snapshot import Snapshot, one_after_another
from tritonpy_bench.options import BenchOptions
from tritonpy_bench.windows import level_over, plan, window_over

Readings = dict[str, Sequence[Reading]]
GRACE_S = 5.0
HURRIED_S = 0.5


class Load(Protocol):
    """What makes the load: the pool of client processes."""

    async def start(self, level: float) -> None:
        """Begin a level."""

    async def look(self) -> Snapshot:
        """Return what was counted since the last look."""

    async def stop(self, grace_s: float) -> None:
        """End the level."""


class MeasuredWindow(msgspec.Struct, frozen=True):
    """What the clients counted in a window, and what the server's statistics say of it."""

    counted: Snapshot
    server: tuple[ServerShare, ...]


class MeasuredLevel(msgspec.Struct, frozen=True):
    """All windows of a level, and every look from its beginning on."""

    level: float
    windows: tuple[MeasuredWindow, ...]
    looks: tuple[Snapshot, ...]
    interrupted: bool


class Measuring:
    """Measures levels one after another; `interrupted` ends what is going on with what was counted so far.

    `read` asks for the server's statistics and blocks; it gives None where there are none. `watch(window_number, look)` is told of every look.
    """

    def __init__(
        self,
        options: BenchOptions,
        load: Load,
        read: Callable[[], Readings | None],
        watch: Callable[[int, Snapshot], None],
        interrupted: asyncio.Event,
    ) -> None:
        self._options = options
        self._load = load
        self._read = read
        self._watch = watch
        self._interrupted = interrupted
        self._look_s = plan(options).look_s

    async def level(self, level: float) -> MeasuredLevel:
        """Measure one level. Raises StartupError where the load cannot be made."""
        self._looks: list[Snapshot] = []
        windows: list[MeasuredWindow] = []
        before = await asyncio.to_thread(self._read)
        await self._load.start(level)
        self._due = time.monotonic()
        try:
            while _warms(look := await self._next(1)) and not self._interrupted.is_set():
                before = await asyncio.to_thread(self._read)
            first: Snapshot | None = look
            while True:
                counted = await self._window(len(windows) + 1, first)
                after = await asyncio.to_thread(self._read)
                windows.append(MeasuredWindow(counted, _shares(before, after)))
                if self._interrupted.is_set() or level_over(self._options, [each.counted for each in windows]):
                    break
                before, first = after, None
        finally:
            await self._load.stop(HURRIED_S if self._interrupted.is_set() else GRACE_S)
        return MeasuredLevel(level, tuple(windows), tuple(self._looks), self._interrupted.is_set())

    async def _window(self, number: int, first: Snapshot | None) -> Snapshot:
        looks = [] if first is None else [first]
        while not looks or not (self._interrupted.is_set() or window_over(self._options, looks)):
            looks.append(await self._next(number))
        return one_after_another(looks)

    async def _next(self, number: int) -> Snapshot:
        """Wait for the time of the next look, and look; an interruption ends the waiting."""
        self._due = max(self._due + self._look_s, time.monotonic())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._interrupted.wait(), max(self._due - time.monotonic(), 0))
        look = await self._load.look()
        self._looks.append(look)
        self._watch(0 if _warms(look) else number, look)
        return look


def _warms(look: Snapshot) -> bool:
    return look.warming and not look.started


def _shares(before: Readings | None, after: Readings | None) -> tuple[ServerShare, ...]:
    if before is None or after is None:
        return ()
    return tuple(share(name, before.get(name, ()), reading) for name, reading in after.items())
