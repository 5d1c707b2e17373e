"""The files of a server's traces: FILE, and FILE.0, FILE.1, … for those that are written bit by bit."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Sequence
from pathlib import Path

log = logging.getLogger("tritonpy.tracing")


class TraceFile:
    """Each file is one JSON array. What cannot be written is lost, which is logged once until writing succeeds again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._numbers = itertools.count()
        self._size = 0  # of what is written to FILE in whole
        self._failing = False

    def append(self, texts: Sequence[bytes]) -> None:
        """Write to FILE, which is complete JSON only after `close`; what was there before the first time is gone."""
        text = (b"," if self._size else b"[") + b",".join(texts)
        self._write_behind(text)

    def write_next(self, texts: Sequence[bytes]) -> None:
        """Write a whole file with the next number."""
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
        """Make FILE complete, if there is one."""
        if self._size:
            self._write_behind(b"]")

    def _write_behind(self, text: bytes) -> None:
        try:
            with self._path.open("r+b" if self._size else "wb") as file:
                file.seek(self._size)
                file.truncate()  # a part that was written before the disk was full
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
