"""Private folders for files that servers of this user store and trust later, such as models."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

ROOT = 0


def make_private_folder(path: Path, *, configured: bool = False) -> str:
    """Create the folder `path`, and its missing parents, for this user only.

    Raises OSError if it cannot be created. Raises PermissionError if it exists and is not safe:
    another user owns it or its parent, or everybody may write to one of them. If the operator
    `configured` the folder, only a foreign owner is an error. Other flaws are returned as a text
    for a warning, because volumes of containers often have them.
    """
    missing = [folder for folder in (path, *path.parents) if not os.path.lexists(folder)]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    user, above = os.geteuid(), os.stat(path.parent)
    if is_foreign(os.lstat(path), user) or is_foreign(os.stat(path), user):
        raise PermissionError(errno.EACCES, "it belongs to another user", str(path))
    flaw = ""
    if os.stat(path).st_mode & stat.S_IWOTH:
        flaw = "everybody may write into it"
    elif is_foreign(above, user):
        flaw = f"{path.parent} belongs to another user"
    elif above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX:
        flaw = f"everybody may write into {path.parent}"
    if flaw and not configured:
        raise PermissionError(errno.EACCES, flaw, str(path))
    return flaw


def is_foreign(status: os.stat_result, user: int) -> bool:
    """Return whether a file belongs to neither `user` nor root."""
    return status.st_uid not in {user, ROOT}
