"""How far a download is: a bar in a terminal, lines in the log elsewhere."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

log = logging.getLogger("tritonpy.repository")

_EVERY_S = 10.0


class Progress(Protocol):
    """Takes note of bytes, from any thread."""

    def add(self, count: int) -> None:
        """So many bytes more are here; negative where some are to be fetched again."""


@contextmanager
def progress(name: str, total: int, already: int) -> Iterator[Progress]:
    """Show how the `total` bytes of a model arrive, of which `already` are here, while the context lasts."""
    if sys.stderr.isatty():
        with _bar(name, total, already) as bar:
            yield bar
    else:
        yield _Lines(name, total, already)


class _Bar:
    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._guard = threading.Lock()

    def add(self, count: int) -> None:
        with self._guard:
            self._bar.update(count)


@contextmanager
def _bar(name: str, total: int, already: int) -> Iterator[Progress]:
    from tqdm import tqdm

    making_way = _MakingWay(tqdm)
    logging.getLogger().handlers.insert(0, making_way)
    try:
        with tqdm(
            desc=name, total=total, initial=already, unit="B", unit_scale=True, leave=False, dynamic_ncols=True
        ) as bar:
            yield _Bar(bar)
    finally:
        logging.getLogger().removeHandler(making_way)


class _MakingWay(logging.Handler):
    """Takes the bars away before a log line is written; they come back with their next step."""

    def __init__(self, bars: Any) -> None:
        super().__init__()
        self._bars = bars

    def emit(self, record: logging.LogRecord) -> None:
        with self._bars.get_lock():
            for bar in list(getattr(self._bars, "_instances", ())):
                bar.clear(nolock=True)


class _Lines:
    def __init__(self, name: str, total: int, already: int) -> None:
        self._name = name
        self._total = total
        self._here = already
        self._started = self._told = time.monotonic()
        self._fetched = 0
        self._guard = threading.Lock()

    def add(self, count: int) -> None:
        with self._guard:
            self._here += count
            self._fetched += count
            now = time.monotonic()
            if now - self._told < _EVERY_S or not self._total:
                return
            self._told = now
            share, rate = 100 * self._here / self._total, self._fetched / (now - self._started)
        log.info(
            "fetching '%s': %.0f %% of %s, %s/s", self._name, share, readable(self._total), readable(max(rate, 0.0))
        )


def readable(byte_size: float) -> str:
    """Return a number of bytes as people read it: 1.5 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if byte_size < 1000:
            return f"{byte_size:.3g} {unit}"
        byte_size /= 1000
    return f"{byte_size:.3g} TB"
