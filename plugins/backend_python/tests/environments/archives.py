"""Archives with valid and invalid content."""

from __future__ import annotations

import io
import logging
import tarfile
import zipfile
from pathlib import Path

from tritonpy_backend_python.environments.archive import extract


def tar_entry(
    name: str,
    content: bytes = b"",
    kind: bytes = tarfile.REGTYPE,
    target: str = "",
    mode: int = 0o644,
):
    """Return a member of a tar archive."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode, info.mtime, info.size = (
        kind,
        target,
        mode,
        1_600_000_000,
        len(content),
    )
    return info, content


def link(name: str, target: str):
    """Return a symbolic link."""
    return tar_entry(name, kind=tarfile.SYMTYPE, target=target)


def write_tar(path: Path, *entries: tuple[tarfile.TarInfo, bytes], mode: str = "w:gz") -> Path:
    """Write a tar archive."""
    with tarfile.open(path, mode) as archive:
        for info, content in entries:
            archive.addfile(info, io.BytesIO(content))
    return path


def write_zip(path: Path, *entries: tuple[str, bytes, int]) -> Path:
    """Write a zip archive of names, contents and Unix modes."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content, mode in entries:
            info = zipfile.ZipInfo(name, (2020, 9, 13, 12, 26, 40))
            info.external_attr = mode << 16
            archive.writestr(info, content)
    return path


def pack(folder: Path, path: Path) -> Path:
    """Pack a folder as conda-pack does: its content, without the folder itself."""
    with tarfile.open(path, "w:gz") as archive:
        for child in sorted(folder.iterdir()):
            archive.add(child, child.name)
    return path


def unpack(path: Path, log: logging.LoggerAdapter[logging.Logger]) -> Path:
    """Extract an archive into a folder next to it."""
    folder = path.parent / "out"
    folder.mkdir()
    with path.open("rb") as file:
        extract(file, folder, log)
    return folder


def contents(folder: Path) -> dict[str, str]:
    """Return the texts of all files below a folder."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }
