"""What tells the answers of one model version from those of all others in a response cache."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tritonpy.api.backend import ModelContext


def model_identity(context: ModelContext, shared: bool) -> bytes:
    """Return the identity of the version that is being loaded: 32 bytes.

    In a cache that only this server uses it is that of the load: a reload, for whatever reason, leaves the old answers behind. In a `shared` cache it is
    made of namespace, name, version, configuration and the content of the files (all of them are read), so that other servers, and the next one here, find the
    answers. An ensemble's answers depend on its members, which its own files do not tell: they are not shared. Raises OSError.
    """
    digest = hashlib.sha256()
    if not shared or context.config.HasField("ensemble_scheduling"):
        digest.update(os.urandom(32))
        return digest.digest()
    settings = context.config.SerializeToString(deterministic=True)
    for part in (context.namespace.encode(), context.name.encode(), b"%d" % context.version, settings):
        _add(digest, part)
    for path in _files(context.directory, context.path):
        _add(digest, path.relative_to(context.directory).as_posix().encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.digest()


def _add(digest: hashlib._Hash, part: bytes) -> None:
    digest.update(len(part).to_bytes(8, "little"))
    digest.update(part)


def _files(directory: Path, version: Path) -> list[Path]:
    """Return the files of the version and those beside the versions, such as modules and labels."""
    found = [path for path in version.rglob("*") if path.is_file()]
    for entry in directory.iterdir():
        if entry.is_file():
            found.append(entry)
        elif entry.is_dir() and not entry.name.isdigit() and entry.name != "configs":
            found += [path for path in entry.rglob("*") if path.is_file()]
    return sorted(set(found))
