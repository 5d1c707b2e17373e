"""Opens a sealed model: every file is checked against the signed manifest, and decrypted, into a folder of one's own."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from tritonpy import InvalidArgument
from tritonpy_agent_sealed.cipher import decrypted, plain
from tritonpy_agent_sealed.keys import decryption_key
from tritonpy_agent_sealed.manifest import MANIFEST, SIGNATURE, Manifest, SealedFile, is_config


def unseal(source: Path, target: Path, manifest: Manifest, keys: Sequence[str]) -> None:
    """Write the model of `source` into `target`, a folder that is there and that nobody else can change.

    What is loaded are the bytes that were checked, and not a file that may change after it was. `keys` are the places of decryption keys.
    Raises InvalidArgument for a file that is missing, changed or none of the manifest's.
    """
    key = decryption_key(manifest.key, keys) if manifest.key else None
    known = {file.path for file in manifest.files} | {MANIFEST, SIGNATURE}
    for path in source.rglob("*"):
        name = path.relative_to(source).as_posix()
        if not path.is_dir() and name not in known:
            raise InvalidArgument(f"the file {name} is not one of those that were sealed")
    for file in manifest.files:
        _open(source, target, file, None if is_config(file.path) else key)
    for folder in manifest.folders:
        (target / folder).mkdir(parents=True, exist_ok=True)


def _open(source: Path, target: Path, file: SealedFile, key: bytes | None) -> None:
    opened = target / file.path
    opened.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    try:
        with (source / file.path).open("rb") as stored, opened.open("xb") as copy:
            reader = _Digesting(stored, digest)
            copy.writelines(plain(reader) if key is None else decrypted(reader, key, file.path))
    except FileNotFoundError as error:
        raise InvalidArgument(f"the file {file.path} is missing") from error
    if digest.hexdigest() != file.sha256:
        raise InvalidArgument(f"the file {file.path} was changed since it was sealed")


class _Digesting:
    """A file whose bytes are counted into a digest as they are read: what was checked is what was used."""

    def __init__(self, file: BinaryIO, digest: hashlib._Hash) -> None:
        self._file = file
        self._digest = digest

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes."""
        piece = self._file.read(size)
        self._digest.update(piece)
        return piece
