"""A file that is being fetched, piece by piece and in any order, and goes on where it was left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

PIECE = 8 << 20
JOURNAL = ".pieces"


class Partial:
    """`size` bytes of which some pieces are there; which ones stands in a journal beside it.

    A piece is in the journal when it is on the disk, so that what a crash leaves is what the journal says. Different pieces may be
    written by different threads.
    """

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self.size = size
        self._journal = path.with_name(f"{path.name}{JOURNAL}")

    def is_allocated(self) -> bool:
        """Say whether it has its room already."""
        return self.path.exists() and self.path.stat().st_size == self.size

    def allocate(self) -> None:
        """Take the room on the disk. Raises OSError where there is none, and then takes none."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if self.size and os.fstat(descriptor).st_size != self.size:
                self._journal.unlink(missing_ok=True)  # it is of another file: what room is new holds no piece
                os.posix_fallocate(descriptor, 0, self.size)
        except OSError:
            self.discard()
            raise
        finally:
            os.close(descriptor)

    def missing(self) -> list[tuple[int, int]]:
        """Return the pieces that are not there: where each begins and ends."""
        there = set(self._written())
        return [(start, end) for start, end in pieces(self.size) if start not in there]

    def write(self, start: int, data: bytes) -> None:
        """Put a piece in its place. Raises OSError."""
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
        """Forget all pieces, and give the room back."""
        self._journal.unlink(missing_ok=True)  # first: it must not outlive what it tells of
        self.path.unlink(missing_ok=True)

    def finished(self) -> Path:
        """Return the file when all pieces are there; it is the caller's then."""
        self._journal.unlink(missing_ok=True)
        return self.path

    def _note(self, start: int) -> None:
        descriptor = os.open(self._journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, b"%d\n" % start)
        finally:
            os.close(descriptor)

    def _written(self) -> Iterator[int]:
        try:
            lines = self._journal.read_bytes().split(b"\n")
        except FileNotFoundError:
            return
        yield from (int(line) for line in lines[:-1] if line.isdigit())  # a line without its end was cut off


def pieces(size: int) -> list[tuple[int, int]]:
    """Return where the pieces of a file of `size` bytes begin and end; none for an empty one."""
    return [(start, min(start + PIECE, size)) for start in range(0, size, PIECE)]
