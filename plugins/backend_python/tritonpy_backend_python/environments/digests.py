"""What files contain, in a few characters.

Content, not name and time, says whether two archives are the same: images are built with all times set to one value, copies
keep the time of the original. Reading gigabytes at every start would be slow, so the digest of a large file is remembered for as long as its
inode, its size and both of its times stay: a file that is replaced or written to has another inode or another time of change,
which no copying tool can set.
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

_WORTH_REMEMBERING = 16 << 20  # bytes; smaller ones are read in milliseconds
_NOT_SOURCES = {"__pycache__", ".git", "build", "dist", ".venv"}


class Digests:
    """Digests of files and folders; `folder` keeps those of large files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of_open(self, file: BufferedReader) -> str:
        """Return the digest of an open file, as hexadecimal digits; it is left at its start."""
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
        """Return the digest of a file, or of a folder's names and contents without what builds leave in it."""
        if not path.is_dir():
            with path.open("rb") as file:
                return self.of_open(file)
        whole = hashlib.sha256()
        for source in _sources(path):
            whole.update(f"{source.relative_to(path)}\0{self.of(source)}\0".encode("utf-8", "surrogateescape"))
        return whole.hexdigest()

    def _remember(self, memory: Path, text: str) -> None:
        with contextlib.suppress(OSError):  # a cache that can only be read
            self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            descriptor, unfinished = tempfile.mkstemp(dir=self._folder)
            with os.fdopen(descriptor, "w") as file:
                file.write(text)
            os.replace(unfinished, memory)


def file_state(file: BufferedReader) -> list[int]:
    """Return what changes when the open file is written to: size, times in ns, inode, device."""
    status = os.fstat(file.fileno())
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev]


def _read(file: BufferedReader) -> str:
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    return digest


def _sources(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _NOT_SOURCES and not name.endswith(".egg-info"))
        yield from (path for path in (Path(place, name) for name in sorted(files)) if path.is_file())
