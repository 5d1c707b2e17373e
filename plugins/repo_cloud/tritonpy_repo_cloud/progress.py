"""Download progress: a bar in a terminal, log lines otherwise."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

log = logging.getLogger("tritonpy.repository")

_LOG_INTERVAL_S = 10.0


class DownloadProgress(Protocol):
    """Receives the progress of a download; thread-safe."""

    def add(self, count: int) -> None:
        """Add `count` fetched bytes; negative if bytes must be fetched again."""


@contextmanager
def progress(name: str, total: int, already: int) -> Iterator[DownloadProgress]:
    """Report the progress of a model of `total` bytes, of which `already` are present."""
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
def _bar(name: str, total: int, already: int) -> Iterator[DownloadProgress]:
    from tqdm import tqdm

    bar_clearer = _BarClearer(tqdm)
    logging.getLogger().handlers.insert(0, bar_clearer)
    try:
        with tqdm(
            desc=name,
            total=total,
            initial=already,
            unit="B",
            unit_scale=True,
            leave=False,
            dynamic_ncols=True,
        ) as bar:
            yield _Bar(bar)
    finally:
        logging.getLogger().removeHandler(bar_clearer)


class _BarClearer(logging.Handler):
    """Clears the bars before a log line is written; their next update draws them again."""

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
        self._present = already
        self._started = self._logged = time.monotonic()
        self._fetched = 0
        self._guard = threading.Lock()

    def add(self, count: int) -> None:
        with self._guard:
            self._present += count
            self._fetched += count
            now = time.monotonic()
            if now - self._logged < _LOG_INTERVAL_S or not self._total:
                return
            self._logged = now
            share, rate = 100 * self._present / self._total, self._fetched / (now - self._started)
        log.info(
            "fetching '%s': %.0f %% of %s, %s/s",
            self._name,
            share,
            format_bytes(self._total),
            format_bytes(max(rate, 0.0)),
        )


def format_bytes(byte_size: float) -> str:
    """Return a number of bytes in readable form, such as 1.5 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if byte_size < 1000:
            return f"{byte_size:.3g} {unit}"
        byte_size /= 1000
    return f"{byte_size:.3g} TB"
