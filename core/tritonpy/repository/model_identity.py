"""The identity of a model version in a response cache."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tritonpy.api.backend import ModelContext


def model_identity(context: ModelContext, shared: bool) -> bytes:
    """Return the identity of the version being loaded: 32 bytes.

    In a private cache the identity is random, so every reload invalidates the previous responses.
    In a `shared` cache it is a digest of namespace, name, version, configuration and the contents
    of all files. Other servers and later runs therefore find the responses. An ensemble's responses
    are never shared: they depend on its members, whose contents are unknown here. Raises `OSError`
    if a file cannot be read.
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
    """Return the files of the version and those outside all version folders, such as labels."""
    found = [path for path in version.rglob("*") if path.is_file()]
    for entry in directory.iterdir():
        if entry.is_file():
            found.append(entry)
        elif entry.is_dir() and not entry.name.isdigit() and entry.name != "configs":
            found += [path for path in entry.rglob("*") if path.is_file()]
    return sorted(set(found))
