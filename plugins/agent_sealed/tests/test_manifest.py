from __future__ import annotations

import pytest

from tritonpy import InvalidArgument
from tritonpy_agent_sealed.keys import signing_key, verify_key
from tritonpy_agent_sealed.manifest import (
    MANIFEST,
    SIGNATURE,
    Manifest,
    SealedFile,
    read_manifest,
    write_manifest,
)

MANY = Manifest("m", (SealedFile("1/model.onnx", "00"), SealedFile("config.pbtxt", "11")), "abcd")


def test_a_signed_manifest_is_read(keys, tmp_path):
    write_manifest(tmp_path, MANY, signing_key(keys.at("signing.pem")))
    assert read_manifest(tmp_path, "m", [verify_key(keys.at("verify.pem"))]) == MANY


def test_a_folder_without_a_manifest_is_not_sealed(keys, tmp_path):
    with pytest.raises(
        InvalidArgument, match=r"^it is not sealed: sealed\.json: No such file or directory$"
    ):
        read_manifest(tmp_path, "m", [verify_key(keys.at("verify.pem"))])


def test_a_signature_of_other_data_is_rejected(keys, tmp_path):
    key = signing_key(keys.at("signing.pem"))
    write_manifest(tmp_path, MANY, key)
    (tmp_path / SIGNATURE).write_bytes(key.sign((tmp_path / MANIFEST).read_bytes()))
    with pytest.raises(InvalidArgument, match="is not a signature"):
        read_manifest(tmp_path, "m", [verify_key(keys.at("verify.pem"))])


def test_without_trusted_keys_no_manifest_is_read(keys, tmp_path):
    write_manifest(tmp_path, MANY, signing_key(keys.at("signing.pem")))
    with pytest.raises(InvalidArgument, match="is not a signature"):
        read_manifest(tmp_path, "m", [])


def test_an_unknown_manifest_format_is_rejected(keys, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "msgspec.json.encode", lambda _manifest: b'{"model": "m", "files": [], "more": 1}'
    )
    write_manifest(tmp_path, MANY, signing_key(keys.at("signing.pem")))
    with pytest.raises(
        InvalidArgument, match=r"^sealed\.json is of another version of this agent: .*more"
    ):
        read_manifest(tmp_path, "m", [verify_key(keys.at("verify.pem"))])
