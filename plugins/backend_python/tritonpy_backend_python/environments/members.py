"""What an archive holds, whatever its format."""

from __future__ import annotations

import calendar
import enum
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from typing import IO

from tritonpy import Internal


class Kind(enum.Enum):
    """What a member becomes."""

    FILE = "file"
    FOLDER = "folder"
    SYMBOLIC_LINK = "symbolic link"
    HARD_LINK = "hard link"
    OTHER = "device or pipe"


@dataclass(frozen=True)
class Member:
    """One entry: `mode` are permission bits, `time` is in seconds since 1970; `target` is what a link names."""

    name: str
    kind: Kind
    mode: int
    time: float
    size: int
    target: str
    open: Callable[[], IO[bytes] | None]


def members(file: BufferedReader) -> Iterator[Member]:
    """Yield the members of the archive in the open `file`, in their order.

    Raises Internal where it is no archive that can be read; a damaged one raises what its library does.
    """
    file.seek(0)
    if tarfile.is_tarfile(file):  # first: a tar archive that ends with a zip archive looks like one
        file.seek(0)
        with tarfile.open(fileobj=file) as tar:
            yield from (_tar_member(tar, info) for info in tar)
    elif zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            yield from (_zip_member(archive, info) for info in archive.infolist())
    else:
        raise Internal(
            f"Failed to extract {file.name}: it is neither a tar archive, plain or compressed with gzip, bzip2 or xz, nor a "
            "zip archive"
        )


def _tar_member(tar: tarfile.TarFile, info: tarfile.TarInfo) -> Member:
    kinds = (
        (info.isreg(), Kind.FILE),
        (info.isdir(), Kind.FOLDER),
        (info.issym(), Kind.SYMBOLIC_LINK),
        (info.islnk(), Kind.HARD_LINK),
    )
    kind = next((kind for holds, kind in kinds if holds), Kind.OTHER)
    return Member(info.name, kind, info.mode, info.mtime, info.size, info.linkname, lambda: tar.extractfile(info))


def _zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Member:
    mode = info.external_attr >> 16  # zero where the archive was not made on a Unix system
    time = calendar.timegm((*info.date_time, 0, 0, 0))
    if info.is_dir():
        return Member(info.filename, Kind.FOLDER, mode or 0o755, time, 0, "", lambda: None)
    if stat.S_ISLNK(mode):
        target = archive.read(info).decode("utf-8", "surrogateescape")
        return Member(info.filename, Kind.SYMBOLIC_LINK, mode, time, 0, target, lambda: None)
    kind = Kind.FILE if stat.S_ISREG(mode) or not stat.S_IFMT(mode) else Kind.OTHER
    return Member(info.filename, kind, mode or 0o644, time, info.file_size, "", lambda: archive.open(info))
