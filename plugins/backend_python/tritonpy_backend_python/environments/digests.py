"""Digests of files and folders, with a cache for large files.

Two archives are equal if their contents are. Names and times do not matter: image builds set all
times to one value, and copies keep the time of the original. Reading gigabytes at every start is
slow, so the digest of a large file is cached. It is valid while the file's inode, size and both
times are the same. A replaced or changed file has another inode or change time, which no copying
tool can set.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

_WORTH_REMEMBERING = 16 << 20  # bytes; smaller files are read in milliseconds
_NOT_SOURCES = {"__pycache__", ".git", "build", "dist", ".venv"}


class Digests:
    """Digests of files and folders. `folder` caches those of large files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of_open(self, file: BufferedReader) -> str:
        """Return the digest of an open file as hexadecimal digits, and rewind the file."""
        state = file_state(file)
        if state[0] < _WORTH_REMEMBERING:
            return _read(file)
        memory = self._folder / hashlib.sha256(os.fsencode(os.path.realpath(file.name))).hexdigest()
        with contextlib.suppress(OSError, ValueError):
            known = json.loads(memory.read_bytes())
            if known["state"] == state:
                return str(known["digest"])
        digest = _read(file)
        self._remember(memory, json.dumps({"state": state, "digest": digest}))
        return digest

    def of(self, path: Path) -> str:
        """Return the digest of a file, or of a folder without its build artifacts."""
        if not path.is_dir():
            with path.open("rb") as file:
                return self.of_open(file)
        whole = hashlib.sha256()
        for source in _sources(path):
            whole.update(
                f"{source.relative_to(path)}\0{self.of(source)}\0".encode(
                    "utf-8", "surrogateescape"
                )
            )
        return whole.hexdigest()

    def _remember(self, memory: Path, text: str) -> None:
        with contextlib.suppress(OSError):  # a read-only cache
            self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            descriptor, unfinished = tempfile.mkstemp(dir=self._folder)
            with os.fdopen(descriptor, "w") as file:
                file.write(text)
            os.replace(unfinished, memory)


def file_state(file: BufferedReader) -> list[int]:
    """Return values that change with the file: size, times in ns, inode and device."""
    status = os.fstat(file.fileno())
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev]


def _read(file: BufferedReader) -> str:
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    return digest


def _sources(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if name not in _NOT_SOURCES and not name.endswith(".egg-info")
        )
        yield from (
            path for path in (Path(place, name) for name in sorted(files)) if path.is_file()
        )
