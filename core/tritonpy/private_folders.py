"""Folders for what this user's servers keep and trust later, such as models: no other user may write into them."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

ROOT = 0


def make_private_folder(path: Path, *, configured: bool = False) -> str:
    """Make the folder `path`, and those above it that are missing, for this user alone.

    Raises OSError where it cannot be made, PermissionError where it is there and is not safe: another user owns it or the folder above it, or
    everybody may write into one of them. Of a folder that the operator `configured`, only a foreign owner is refused. Other flaws are
    returned as a text for a warning, because volumes of containers often have them.
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
