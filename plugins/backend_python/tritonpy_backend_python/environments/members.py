"""Members of archives, in any supported format."""

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


class MemberKind(enum.Enum):
    """The type of a member."""

    FILE = "file"
    FOLDER = "folder"
    SYMBOLIC_LINK = "symbolic link"
    HARD_LINK = "hard link"
    OTHER = "device or pipe"


@dataclass(frozen=True)
class ArchiveMember:
    """An archive member.

    `mode` are permission bits, `time` is in seconds since 1970, `target` is a link's.
    """

    name: str
    kind: MemberKind
    mode: int
    time: float
    size: int
    target: str
    open: Callable[[], IO[bytes] | None]


def members(file: BufferedReader) -> Iterator[ArchiveMember]:
    """Yield the members of the archive in the open `file`, in order.

    Raises `Internal` if the format is not supported. For a damaged archive, its library's error is
    raised.
    """
    file.seek(0)
    # First, because a tar archive that ends with a zip archive also looks like one.
    if tarfile.is_tarfile(file):
        file.seek(0)
        with tarfile.open(fileobj=file) as tar:
            yield from (_tar_member(tar, info) for info in tar)
    elif zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            yield from (_zip_member(archive, info) for info in archive.infolist())
    else:
        raise Internal(
            f"Failed to extract {file.name}: it is neither a tar archive, "
            "plain or compressed with gzip, bzip2 or xz, nor a "
            "zip archive"
        )


def _tar_member(tar: tarfile.TarFile, info: tarfile.TarInfo) -> ArchiveMember:
    kinds = (
        (info.isreg(), MemberKind.FILE),
        (info.isdir(), MemberKind.FOLDER),
        (info.issym(), MemberKind.SYMBOLIC_LINK),
        (info.islnk(), MemberKind.HARD_LINK),
    )
    kind = next((kind for holds, kind in kinds if holds), MemberKind.OTHER)
    return ArchiveMember(
        info.name,
        kind,
        info.mode,
        info.mtime,
        info.size,
        info.linkname,
        lambda: tar.extractfile(info),
    )


def _zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> ArchiveMember:
    mode = info.external_attr >> 16  # 0 if the archive was not created on a Unix system
    time = calendar.timegm((*info.date_time, 0, 0, 0))
    if info.is_dir():
        return ArchiveMember(
            info.filename, MemberKind.FOLDER, mode or 0o755, time, 0, "", lambda: None
        )
    if stat.S_ISLNK(mode):
        target = archive.read(info).decode("utf-8", "surrogateescape")
        return ArchiveMember(
            info.filename, MemberKind.SYMBOLIC_LINK, mode, time, 0, target, lambda: None
        )
    kind = MemberKind.FILE if stat.S_ISREG(mode) or not stat.S_IFMT(mode) else MemberKind.OTHER
    return ArchiveMember(
        info.filename, kind, mode or 0o644, time, info.file_size, "", lambda: archive.open(info)
    )
