"""Creation of sealed models."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from google.protobuf import text_format

from tritonpy import InvalidArgument
from tritonpy_agent_sealed.cipher import encrypt_pieces, read_pieces
from tritonpy_agent_sealed.keys import key_id
from tritonpy_agent_sealed.manifest import (
    CONFIG,
    MANIFEST,
    SIGNATURE,
    Manifest,
    SealedFile,
    is_config,
    write_manifest,
)
from tritonpy_protos.model_config_pb2 import ModelConfig

NAME = "sealed"
AGENT = f'model_repository_agents {{ agents {{ name: "{NAME}" }} }}'


def seal(source: Path, target: Path, signing: Ed25519PrivateKey, encryption: bytes | None) -> int:
    """Write the model in folder `source` to `target`, whose name becomes the model's.

    Return its file count.

    With an `encryption` key, all files except the configurations are encrypted.

    Raises `InvalidArgument` if `target` exists, or if the model has no configuration, names only
    other agents, or is sealed. On an error, including `OSError`, `target` is not created.
    """
    if not (source / CONFIG).is_file():
        raise InvalidArgument(
            f"{source} has no {CONFIG}, which must name the agent of a sealed model"
        )
    if target.exists():
        raise InvalidArgument(f"{target} exists already")
    contents = sorted(_contents(source))
    try:
        manifest = _write_files(source, target, contents, encryption)
        write_manifest(target, manifest, signing)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    return len(manifest.files)


def _contents(source: Path) -> Iterator[Path]:
    """Yield all files and the empty folders, because a version may need no file.

    Links are followed.
    """
    for current, folders, names in os.walk(source, followlinks=True, onerror=_raise):
        here = Path(current)
        if any(here.samefile(source / above) for above in here.relative_to(source).parents):
            raise InvalidArgument(f"the link {here} leads to one of its parent folders")
        if not folders and not names:
            yield here
        yield from (here / name for name in names)


def _raise(error: OSError) -> NoReturn:
    raise error


def _write_files(
    source: Path, target: Path, contents: list[Path], encryption: bytes | None
) -> Manifest:
    files, folders = [], []
    for path in contents:
        name = path.relative_to(source).as_posix()
        if name in {MANIFEST, SIGNATURE}:
            raise InvalidArgument(f"{source} is sealed already: it has a {name}")
        if path.is_dir():
            folders.append(name)
            continue
        if not path.is_file():
            raise InvalidArgument(f"{path} is not a file and does not lead to one")
        stored = target / name
        stored.parent.mkdir(parents=True, exist_ok=True)
        pieces = _config(path) if is_config(name) else _read_file(path, name, encryption)
        files.append(SealedFile(name, _write(stored, pieces)))
    key = "" if encryption is None else key_id(encryption)
    return Manifest(target.name, tuple(files), key, tuple(folders))


def _config(path: Path) -> Iterator[bytes]:
    """Yield the configuration, with the agent `sealed` added."""
    content = path.read_bytes()
    try:
        config = text_format.Parse(content, ModelConfig())
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{path} is not a configuration: {error}") from error
    agents = [agent.name for agent in config.model_repository_agents.agents]
    if agents and NAME not in agents:
        raise InvalidArgument(
            f"{path} names the repository agents {', '.join(agents)}, but not '{NAME}': "
            "put it before those that read the decrypted files"
        )
    yield content
    if not agents:
        yield f"\n{AGENT}\n".encode()


def _read_file(path: Path, name: str, key: bytes | None) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from read_pieces(file) if key is None else encrypt_pieces(file, key, name)


def _write(path: Path, pieces: Iterator[bytes]) -> str:
    digest = hashlib.sha256()
    with path.open("xb") as file:
        for piece in pieces:
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()
