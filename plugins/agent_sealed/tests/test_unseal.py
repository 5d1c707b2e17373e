from __future__ import annotations

import pytest

from tritonpy import InvalidArgument
from tritonpy_agent_sealed.keys import verify_key
from tritonpy_agent_sealed.manifest import read_manifest
from tritonpy_agent_sealed.unseal import unseal


@pytest.fixture
def target(tmp_path):
    (tmp_path / "target").mkdir()
    return tmp_path / "target"


def test_a_missing_file_is_named(keys, sealed, target):
    manifest = read_manifest(sealed, "m", [verify_key(keys.at("verify.pem"))])
    (sealed / "labels.txt").unlink()
    with pytest.raises(InvalidArgument, match=r"^the file labels\.txt is missing$"):
        unseal(sealed, target, manifest, [keys.at("encryption.key")])


def test_an_extra_file_is_named_before_any_output(keys, sealed, target):
    manifest = read_manifest(sealed, "m", [verify_key(keys.at("verify.pem"))])
    (sealed / "1" / "sitecustomize.py").write_text("")
    with pytest.raises(
        InvalidArgument, match=r"^the file 1/sitecustomize\.py is not in the manifest$"
    ):
        unseal(sealed, target, manifest, [keys.at("encryption.key")])
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("sealed", ["signed"], indirect=True)
def test_a_changed_file_is_named(keys, sealed, target):
    manifest = read_manifest(sealed, "m", [verify_key(keys.at("verify.pem"))])
    (sealed / "labels.txt").write_bytes(b"no\nyes\n")
    with pytest.raises(
        InvalidArgument, match=r"^the file labels\.txt was changed since it was sealed$"
    ):
        unseal(sealed, target, manifest, [])
