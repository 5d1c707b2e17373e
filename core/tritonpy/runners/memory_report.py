"""Cached memory usage of a model version, updated in the background."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator

from tritonpy.api.backend import Backend
from tritonpy.api.device import ModelMemory
from tritonpy.api.engine import MemoryUsage
from tritonpy.runners.thread_pool import ThreadPool
from tritonpy.statistics.memory import total_memory_usage
from tritonpy_types.clock import now_ns

REFRESH_NS = 2_000_000_000  # minimum time between two measurements


class MemoryReport:
    """Returns the latest known usage immediately and updates old values on one of `threads`.

    Only one measurement runs at a time. `measure` may be slow. If it raises, the values stay
    unchanged.
    """

    def __init__(
        self,
        measure: Callable[[], Iterable[MemoryUsage]],
        log: logging.LoggerAdapter[logging.Logger],
        threads: ThreadPool,
        age_ns: int | None = None,
    ) -> None:
        self._measure_usage = measure
        self._log = log
        self._threads = threads
        self._age_ns = REFRESH_NS if age_ns is None else age_ns
        self._measuring = threading.Lock()
        self._measured_ns = 0
        self._usage: list[MemoryUsage] = []
        self._last_warning = ""

    def latest(self) -> list[MemoryUsage]:
        """Return the latest usage; never blocks."""
        if now_ns() - self._measured_ns >= self._age_ns and self._measuring.acquire(blocking=False):
            self._threads.run(self._refresh_in_background)
        return self._usage

    def refresh(self) -> None:
        """Measure now and wait for the result."""
        with self._measuring:
            self._measure()

    def _refresh_in_background(self) -> None:
        try:
            self._measure()
        finally:
            self._measuring.release()

    def _measure(self) -> None:
        warning = ""
        try:
            self._usage = total_memory_usage(self._measure_usage())
        except Exception as error:
            warning = f"{type(error).__name__}: {error}"
        self._measured_ns = now_ns()
        if warning not in ("", self._last_warning):
            self._log.warning("its memory usage is unknown: %s", warning)
        self._last_warning = warning


def pooled_memory(memory: ModelMemory) -> Iterator[MemoryUsage]:
    """Yield the memory that the pools lend to a model."""
    for kind, device, byte_size in memory.held():
        if byte_size:
            yield MemoryUsage(kind, device, byte_size)


def reports_memory(backend: type[Backend]) -> bool:
    """Return whether `backend` implements a memory usage method."""
    shared = backend.shared_memory_usage.__func__  # type: ignore[attr-defined]
    return (
        backend.memory_usage is not Backend.memory_usage
        or shared is not Backend.shared_memory_usage.__func__  # type: ignore[attr-defined]
    )
