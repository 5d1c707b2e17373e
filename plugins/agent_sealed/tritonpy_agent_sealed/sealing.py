"""Makes a sealed model of an ordinary one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tritonpy import InvalidArgument
from tritonpy_agent_sealed.cipher import encrypted, plain
from tritonpy_agent_sealed.keys import key_id
from tritonpy_agent_sealed.manifest import CONFIG, Manifest, SealedFile, write

AGENT = 'model_repository_agents { agents { name: "sealed" } }'


def seal(source: Path, target: Path, signing: Ed25519PrivateKey, encryption: bytes | None) -> int:
    """Write the model of the folder `source` to `target`, whose name becomes the model's; return the number of its files.

    With an `encryption` key all files but the configuration are encrypted. Raises InvalidArgument for a target that is there, or a model without configuration.
    """
    config = source / CONFIG
    if not config.is_file():
        raise InvalidArgument(f"{source} has no {CONFIG}: a sealed model says there that it is one")
    if target.exists():
        raise InvalidArgument(f"{target} is there already")
    files = []
    for path in sorted(path for path in source.rglob("*") if path.is_file()):
        name = path.relative_to(source).as_posix()
        stored = target / name
        stored.parent.mkdir(parents=True, exist_ok=True)
        pieces = _config(path) if path == config else _stored(path, name, encryption)
        files.append(SealedFile(name, _write(stored, pieces)))
    write(target, Manifest(target.name, tuple(files), "" if encryption is None else key_id(encryption)), signing)
    return len(files)


def _config(path: Path) -> Iterator[bytes]:
    """Yield the configuration, with the agent that opens the model; it is read before there is anybody to decrypt it."""
    text = path.read_text(encoding="utf-8")
    yield text.encode()
    if "model_repository_agents" not in text:
        yield f"\n{AGENT}\n".encode()


def _stored(path: Path, name: str, key: bytes | None) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from plain(file) if key is None else encrypted(file, key, name)


def _write(path: Path, pieces: Iterator[bytes]) -> str:
    digest = hashlib.sha256()
    with path.open("xb") as file:
        for piece in pieces:
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()
