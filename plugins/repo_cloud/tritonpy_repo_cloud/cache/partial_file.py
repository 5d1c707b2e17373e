"""Partial downloads: files that are fetched in pieces, in any order, and can be resumed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

PIECE = 8 << 20
JOURNAL = ".pieces"


class PartialFile:
    """A file of `size` bytes with some pieces present; a journal next to it lists them.

    A piece is added to the journal after it is on disk, so the journal is correct after a crash.
    Threads may write different pieces concurrently.
    """

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self.size = size
        self._journal = path.with_name(f"{path.name}{JOURNAL}")

    def is_allocated(self) -> bool:
        """Return whether the disk space is allocated."""
        return self.path.exists() and self.path.stat().st_size == self.size

    def allocate(self) -> None:
        """Allocate the disk space, or nothing; raise `OSError` if the disk is full."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if self.size and os.fstat(descriptor).st_size != self.size:
                # the journal belongs to another file: newly allocated space has no pieces
                self._journal.unlink(missing_ok=True)
                os.posix_fallocate(descriptor, 0, self.size)
        except OSError:
            self.discard()
            raise
        finally:
            os.close(descriptor)

    def missing(self) -> list[tuple[int, int]]:
        """Return the start and end of each missing piece."""
        there = set(self._written())
        return [(start, end) for start, end in pieces(self.size) if start not in there]

    def write(self, start: int, data: bytes) -> None:
        """Write a piece at `start`; raise `OSError` on failure."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            at, view = start, memoryview(data)
            while view:
                count = os.pwrite(descriptor, view, at)
                at, view = at + count, view[count:]
            if self.size > PIECE:
                os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        if self.size > PIECE:
            self._note(start)

    def discard(self) -> None:
        """Remove all pieces and free the disk space."""
        self._journal.unlink(
            missing_ok=True
        )  # first, because it must not outlive the pieces that it lists
        self.path.unlink(missing_ok=True)

    def finish(self) -> Path:
        """Return the complete file, which the caller then owns."""
        self._journal.unlink(missing_ok=True)
        return self.path

    def _note(self, start: int) -> None:
        descriptor = os.open(
            self._journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        try:
            os.write(descriptor, b"%d\n" % start)
        finally:
            os.close(descriptor)

    def _written(self) -> Iterator[int]:
        try:
            lines = self._journal.read_bytes().split(b"\n")
        except FileNotFoundError:
            return
        # a last line without a newline is incomplete
        yield from (int(line) for line in lines[:-1] if line.isdigit())


def pieces(size: int) -> list[tuple[int, int]]:
    """Return the start and end of each piece of a file of `size` bytes; empty for an empty file."""
    return [(start, min(start + PIECE, size)) for start in range(0, size, PIECE)]
