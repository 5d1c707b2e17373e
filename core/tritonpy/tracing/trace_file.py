"""The trace files of a server: FILE, or FILE.0, FILE.1, … with a log frequency."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Sequence
from pathlib import Path

log = logging.getLogger("tritonpy.tracing")


class TraceFile:
    """Trace files, each with one JSON array.

    Write errors lose traces and are logged once until a write succeeds.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._numbers = itertools.count()
        self._size = 0  # bytes written to FILE
        self._failing = False

    def append(self, texts: Sequence[bytes]) -> None:
        """Append to FILE. The first call replaces an existing file; `close` completes the JSON."""
        text = (b"," if self._size else b"[") + b",".join(texts)
        self._write_at_end(text)

    def write_next(self, texts: Sequence[bytes]) -> None:
        """Write a complete file with the next number."""
        path = self._path.with_name(f"{self._path.name}.{next(self._numbers)}")
        try:
            path.write_bytes(b"[%b]" % b",".join(texts))
        except OSError as error:
            with contextlib.suppress(OSError):
                path.unlink()
            self._failed(path, error)
        else:
            self._failing = False

    def close(self) -> None:
        """Complete FILE if it was written."""
        if self._size:
            self._write_at_end(b"]")

    def _write_at_end(self, text: bytes) -> None:
        try:
            with self._path.open("r+b" if self._size else "wb") as file:
                file.seek(self._size)
                file.truncate()  # remove a partial write to a full disk
                file.write(text)
        except OSError as error:
            self._failed(self._path, error)
        else:
            self._size += len(text)
            self._failing = False

    def _failed(self, path: Path, error: OSError) -> None:
        if not self._failing:
            log.error("traces are lost: cannot write '%s': %s", path, error.strerror)
        self._failing = True
