"""Makes a sealed model of an ordinary one."""

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
from tritonpy_agent_sealed.cipher import encrypted, plain
from tritonpy_agent_sealed.keys import key_id
from tritonpy_agent_sealed.manifest import CONFIG, MANIFEST, SIGNATURE, Manifest, SealedFile, is_config, write
from tritonpy_protos.model_config_pb2 import ModelConfig

NAME = "sealed"
AGENT = f'model_repository_agents {{ agents {{ name: "{NAME}" }} }}'


def seal(source: Path, target: Path, signing: Ed25519PrivateKey, encryption: bytes | None) -> int:
    """Write the model of the folder `source` to `target`, whose name becomes the model's; return the number of its files.

    With an `encryption` key all files but the configurations are encrypted. Raises InvalidArgument for a target that is there, for a model without
    configuration, or with one that names other agents alone, and for one that is sealed already; then, and where OSError is raised, `target` is not made.
    """
    if not (source / CONFIG).is_file():
        raise InvalidArgument(f"{source} has no {CONFIG}: a sealed model says there that it is one")
    if target.exists():
        raise InvalidArgument(f"{target} is there already")
    contents = sorted(_contents(source))
    try:
        manifest = _written(source, target, contents, encryption)
        write(target, manifest, signing)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    return len(manifest.files)


def _contents(source: Path) -> Iterator[Path]:
    """Yield all files, and the folders that have nothing in them: a version may need no file. Links are followed."""
    for current, folders, names in os.walk(source, followlinks=True, onerror=_raise):
        here = Path(current)
        if any(here.samefile(source / above) for above in here.relative_to(source).parents):
            raise InvalidArgument(f"the link {here} leads back to a folder that it lies in")
        if not folders and not names:
            yield here
        yield from (here / name for name in names)


def _raise(error: OSError) -> NoReturn:
    raise error


def _written(source: Path, target: Path, contents: list[Path], encryption: bytes | None) -> Manifest:
    files, folders = [], []
    for path in contents:
        name = path.relative_to(source).as_posix()
        if name in {MANIFEST, SIGNATURE}:
            raise InvalidArgument(f"{source} is sealed already: it has a {name}")
        if path.is_dir():
            folders.append(name)
            continue
        if not path.is_file():
            raise InvalidArgument(f"{path} is no file, and leads to none")
        stored = target / name
        stored.parent.mkdir(parents=True, exist_ok=True)
        pieces = _config(path) if is_config(name) else _stored(path, name, encryption)
        files.append(SealedFile(name, _write(stored, pieces)))
    key = "" if encryption is None else key_id(encryption)
    return Manifest(target.name, tuple(files), key, tuple(folders))


def _config(path: Path) -> Iterator[bytes]:
    """Yield the configuration, with the agent that opens the model."""
    content = path.read_bytes()
    try:
        config = text_format.Parse(content, ModelConfig())
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{path} is no configuration: {error}") from error
    agents = [agent.name for agent in config.model_repository_agents.agents]
    if agents and NAME not in agents:
        raise InvalidArgument(
            f"{path} names the repository agents {', '.join(agents)}, but not '{NAME}': put it before those that look at the opened files"
        )
    yield content
    if not agents:
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
