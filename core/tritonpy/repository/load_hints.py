"""Hints for operators about loads that failed because of file locations or permissions."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tritonpy.api.repository import ModelListing
from tritonpy.config.folder_hints import layout_hint
from tritonpy.config.known_backends import BackendFiles, formats

_MOST_FILES = 1000
_ABOUT_LAYOUT = ("Could not determine backend", "unable to find '", "at least one version must be available")
"""Error texts that wrong file names may cause."""


def load_hint(
    text: str, listing: ModelListing, directory: Path | None, installed: Callable[[], Iterable[BackendFiles]]
) -> str:
    """Return the hint to append to the error `text` of a load, with a full stop before it, or ""."""
    hint = unreadable_hint(directory) if directory is not None else ""
    if not hint and any(sign in text for sign in _ABOUT_LAYOUT):
        hint = layout_hint(listing.name, listing.files, formats(list(installed())))
    start = "" if text.endswith("\n") else " " if text.endswith(".") else ". "
    return f"{start}{hint[:1].upper()}{hint[1:]}." if hint else ""


def unreadable_hint(directory: Path) -> str:
    """Return a hint about a file or folder that the server's user cannot read, or ""."""
    for number, (path, is_folder) in enumerate(_entries(directory)):
        if number >= _MOST_FILES:
            break
        if not os.access(path, os.R_OK | (os.X_OK if is_folder else 0), effective_ids=True):
            kind, mode = ("folder", "a+rx") if is_folder else ("file", "a+r")
            return f"the {kind} '{path}' cannot be read by user {_user()}: chmod {mode} '{path}'"
    return ""


def _entries(directory: Path) -> Iterator[tuple[str, bool]]:
    if directory.is_dir():
        yield str(directory), True
    for folder, folders, files in os.walk(directory):
        yield from ((os.path.join(folder, name), True) for name in folders)
        yield from ((os.path.join(folder, name), False) for name in files)


def _user() -> str:
    try:
        return f"'{getpass.getuser()}'" if os.geteuid() == os.getuid() else str(os.geteuid())
    except (KeyError, OSError):
        return str(os.geteuid())
