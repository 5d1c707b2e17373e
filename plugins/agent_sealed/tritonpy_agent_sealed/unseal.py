"""Unsealing: check every file against the signed manifest, decrypt it into a private folder."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from tritonpy import InvalidArgument
from tritonpy_agent_sealed.cipher import decrypt_pieces, read_pieces
from tritonpy_agent_sealed.keys import decryption_key
from tritonpy_agent_sealed.manifest import MANIFEST, SIGNATURE, Manifest, SealedFile, is_config


def unseal(source: Path, target: Path, manifest: Manifest, keys: Sequence[str]) -> None:
    """Write the model in `source` into `target`, an existing folder that no one else can change.

    The written bytes are those that were checked, even if a file changes meanwhile. `keys` are
    locations of decryption keys.

    Raises `InvalidArgument` for a file that is missing, changed or not in the manifest.
    """
    key = decryption_key(manifest.key, keys) if manifest.key else None
    known = {file.path for file in manifest.files} | {MANIFEST, SIGNATURE}
    for path in source.rglob("*"):
        name = path.relative_to(source).as_posix()
        if not path.is_dir() and name not in known:
            raise InvalidArgument(f"the file {name} is not in the manifest")
    for file in manifest.files:
        _unseal_file(source, target, file, None if is_config(file.path) else key)
    for folder in manifest.folders:
        (target / folder).mkdir(parents=True, exist_ok=True)


def _unseal_file(source: Path, target: Path, file: SealedFile, key: bytes | None) -> None:
    opened = target / file.path
    opened.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    try:
        with (source / file.path).open("rb") as stored, opened.open("xb") as copy:
            reader = _HashingReader(stored, digest)
            copy.writelines(
                read_pieces(reader) if key is None else decrypt_pieces(reader, key, file.path)
            )
    except FileNotFoundError as error:
        raise InvalidArgument(f"the file {file.path} is missing") from error
    if digest.hexdigest() != file.sha256:
        raise InvalidArgument(f"the file {file.path} was changed since it was sealed")


class _HashingReader:
    """A file that updates a digest while it is read: the checked bytes are the used ones."""

    def __init__(self, file: BinaryIO, digest: hashlib._Hash) -> None:
        self._file = file
        self._digest = digest

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes."""
        piece = self._file.read(size)
        self._digest.update(piece)
        return piece
