"""The manifest of a sealed model and its signature."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tritonpy import InvalidArgument

MANIFEST = "sealed.json"
SIGNATURE = "sealed.sig"
CONFIG = "config.pbtxt"
# Prefix that separates manifests from other data signed with the same key.
_CONTEXT = b"tritonpy sealed model 1\n"


class SealedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of the model.

    `path` is relative to the model, with forward slashes. `sha256` is that of the stored bytes, in
    hex.
    """

    path: str
    sha256: str


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Model name, files, id of the encryption key ("" if only signed) and empty folders."""

    model: str
    files: tuple[SealedFile, ...]
    key: str = ""
    folders: tuple[str, ...] = ()


def is_config(path: str) -> bool:
    """Return whether a file is a configuration. Configurations are read before decryption."""
    return path == CONFIG or (path.count("/") == 1 and PurePosixPath(path).match("configs/*.pbtxt"))


def write_manifest(folder: Path, manifest: Manifest, key: Ed25519PrivateKey) -> None:
    """Write the manifest and its signature next to the files."""
    text = msgspec.json.format(msgspec.json.encode(manifest))
    (folder / MANIFEST).write_bytes(text)
    (folder / SIGNATURE).write_bytes(key.sign(_CONTEXT + text))


def read_manifest(folder: Path, model: str, trusted: Sequence[Ed25519PublicKey]) -> Manifest:
    """Return the manifest of `model`.

    Raises `InvalidArgument` unless one of `trusted` signed it for that model.
    """
    try:
        text, signature = (folder / MANIFEST).read_bytes(), (folder / SIGNATURE).read_bytes()
    except OSError as error:
        raise InvalidArgument(
            f"it is not sealed: {Path(error.filename).name}: {error.strerror}"
        ) from error
    if not any(_signed(key, signature, text) for key in trusted):
        raise InvalidArgument(f"{SIGNATURE} is not a signature of {MANIFEST} by a trusted key")
    try:
        manifest = msgspec.json.decode(text, type=Manifest)
    except msgspec.DecodeError as error:
        raise InvalidArgument(f"{MANIFEST} is of another version of this agent: {error}") from error
    if manifest.model != model:
        raise InvalidArgument(f"it was sealed as the model '{manifest.model}'")
    for name in (*(file.path for file in manifest.files), *manifest.folders):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise InvalidArgument(f"{MANIFEST} names a file outside the model: {name}")
    return manifest


def _signed(key: Ed25519PublicKey, signature: bytes, text: bytes) -> bool:
    try:
        key.verify(signature, _CONTEXT + text)
    except InvalidSignature:
        return False
    return True
