"""Keys and a model to seal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tritonpy_agent_sealed.keys import (
    encryption_key,
    new_encryption_key,
    new_signing_key,
    signing_key,
)
from tritonpy_agent_sealed.options import SealedOptions
from tritonpy_agent_sealed.seal import seal

CONTENT = {
    "config.pbtxt": b'backend: "identity"\n',
    "1/model.onnx": bytes(range(256)) * 9000,
    "1/deep/empty": b"",
    "labels.txt": b"yes\nno\n",
}


@dataclass
class Keys:
    """A signature key pair and an encryption key, as files."""

    folder: Path

    def __post_init__(self) -> None:
        private, public = new_signing_key()
        self.folder.mkdir()
        (self.folder / "signing.pem").write_bytes(private)
        (self.folder / "verify.pem").write_bytes(public)
        (self.folder / "encryption.key").write_bytes(new_encryption_key())

    def at(self, name: str) -> str:
        return str(self.folder / name)

    def options(self, **more: object) -> SealedOptions:
        return SealedOptions(
            verify_key_files=(self.at("verify.pem"),),
            decryption_key_files=(self.at("encryption.key"),),
            **more,
        )


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path / "keys")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name, content in CONTENT.items():
        path = tmp_path / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "source"


@pytest.fixture(params=["encrypted", "signed"])
def sealed(request: pytest.FixtureRequest, keys: Keys, source: Path, tmp_path: Path) -> Path:
    """A sealed model, encrypted or only signed."""
    key = encryption_key(keys.at("encryption.key")) if request.param == "encrypted" else None
    seal(source, tmp_path / "sealed" / "m", signing_key(keys.at("signing.pem")), key)
    return tmp_path / "sealed" / "m"
