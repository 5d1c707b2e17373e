"""Safe extraction of archive members.

These members stop the extraction: absolute names, names with "..", members written through a link,
links that lead out of the folder, devices and pipes. Only `bin/python…` may link to the outside: a
packed virtual environment links to the interpreter of its machine that way.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from tritonpy import Internal
from tritonpy_backend_python.environments.members import ArchiveMember, MemberKind

_PERMISSIONS = 0o777
_INTERPRETER = re.compile(r"bin/python[\d.]*")


class Extraction:
    """Writes members below `root`. `archive` is its name in error texts."""

    def __init__(self, root: Path, archive: str) -> None:
        self._root = root
        self._archive = archive
        self._folders = {root}
        self._links: list[Path] = []
        self.files = 0
        self.size = 0

    def add(self, member: ArchiveMember) -> None:
        """Write a member. Raises `Internal` if it is forbidden."""
        path = self._path(member.name, member)
        if member.kind is MemberKind.FOLDER:
            self._make_folder(path, member)
            return
        if path == self._root:
            raise self._error(member, "it replaces the folder itself")
        self._make_folder(path.parent, member)
        if path.is_dir() and not path.is_symlink():
            raise self._error(member, "it replaces a folder")
        path.unlink(missing_ok=True)
        self._write(path, member)
        self.files += 1

    def check_links(self) -> None:
        """Raise `Internal` if a link leads out of the folder.

        Links can depend on each other, so this comes last.
        """
        root = Path(os.path.realpath(self._root))
        for link in self._links:
            end = Path(os.path.realpath(link))
            name = link.relative_to(self._root).as_posix()
            if not end.is_relative_to(root) and (end.is_dir() or not _INTERPRETER.fullmatch(name)):
                raise Internal(
                    f"Failed to extract {self._archive}: the link {name!r} leads out of it, "
                    f"to {str(end)!r}"
                )

    def _write(self, path: Path, member: ArchiveMember) -> None:
        if member.kind is MemberKind.FILE:
            self._write_file(path, member)
        elif member.kind is MemberKind.SYMBOLIC_LINK:
            path.symlink_to(member.target)
            self._links.append(path)
        elif member.kind is MemberKind.HARD_LINK:
            self._write_hard_link(path, member)
        else:
            raise self._error(member, f"it is a {member.kind.value}")

    def _write_file(self, path: Path, member: ArchiveMember) -> None:
        source = member.open()
        if source is None:
            raise self._error(member, "it has no content")
        with source, path.open("xb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        path.chmod(member.mode & _PERMISSIONS | 0o600)
        # Compiled modules are only valid for sources of the same time.
        os.utime(path, (member.time, member.time))
        self.size += member.size

    def _write_hard_link(self, path: Path, member: ArchiveMember) -> None:
        target = self._path(member.target, member)
        if target.parent not in self._folders or target.is_symlink() or not target.is_file():
            raise self._error(
                member,
                f"it links to {member.target!r}, which is not an earlier file of the archive",
            )
        os.link(target, path)

    def _make_folder(self, path: Path, member: ArchiveMember) -> None:
        if path in self._folders:
            return
        self._make_folder(path.parent, member)
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise self._error(member, f"{str(path.relative_to(self._root))!r} is a link or a file")
        path.mkdir(exist_ok=True)
        self._folders.add(path)

    def _path(self, name: str, member: ArchiveMember) -> Path:
        if name.startswith("/"):
            raise self._error(member, "its path is absolute")
        parts = [part for part in name.split("/") if part not in {"", "."}]
        if ".." in parts:
            raise self._error(member, "its path contains '..'")
        return self._root.joinpath(*parts)

    def _error(self, member: ArchiveMember, reason: str) -> Internal:
        return Internal(f"Failed to extract {self._archive}: {member.name!r} is rejected: {reason}")
