"""What a model version holds, told from memory: who knows it is asked in the background."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator

from tritonpy.api.backend import Backend
from tritonpy.api.engine import MemoryUsage
from tritonpy.clock import now_ns
from tritonpy.device_memory import ModelMemory
from tritonpy.runners.thread_pool import ThreadPool
from tritonpy.statistics.memory import summed

REFRESH_NS = 2_000_000_000  # figures are not asked for more often than this


class MemoryReport:
    """One question at a time. Who wants to know gets the last answer at once, and has the next one asked for, on one of `threads`, where that is old.

    `ask` may take its time, and raise: then the figures stay as they are.
    """

    def __init__(
        self,
        ask: Callable[[], Iterable[MemoryUsage]],
        log: logging.LoggerAdapter[logging.Logger],
        threads: ThreadPool,
        age_ns: int | None = None,
    ) -> None:
        self._ask = ask
        self._log = log
        self._threads = threads
        self._age_ns = REFRESH_NS if age_ns is None else age_ns
        self._asking = threading.Lock()
        self._asked_ns = 0
        self._figures: list[MemoryUsage] = []
        self._complaint = ""

    def latest(self) -> list[MemoryUsage]:
        """Return the last figures; never waits."""
        if now_ns() - self._asked_ns >= self._age_ns and self._asking.acquire(blocking=False):
            self._threads.run(self._follow)
        return self._figures

    def renew(self) -> None:
        """Ask now, and wait for the answer."""
        with self._asking:
            self._measure()

    def _follow(self) -> None:
        try:
            self._measure()
        finally:
            self._asking.release()

    def _measure(self) -> None:
        complaint = ""
        try:
            self._figures = summed(self._ask())
        except Exception as error:
            complaint = f"{type(error).__name__}: {error}"
        self._asked_ns = now_ns()
        if complaint not in ("", self._complaint):
            self._log.warning("its memory usage is not known: %s", complaint)
        self._complaint = complaint


def lent(memory: ModelMemory) -> Iterator[MemoryUsage]:
    """Yield what the pools lend to a model."""
    for kind, device, byte_size in memory.held():
        if byte_size:
            yield MemoryUsage(kind, device, byte_size)


def tells_memory(backend: type[Backend]) -> bool:
    """Say whether `backend` says anything of its memory."""
    shared = backend.shared_memory_usage.__func__  # type: ignore[attr-defined]
    return (
        backend.memory_usage is not Backend.memory_usage or shared is not Backend.shared_memory_usage.__func__  # type: ignore[attr-defined]
    )
