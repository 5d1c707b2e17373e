from __future__ import annotations

import pytest

from tritonpy import InvalidArgument
from tritonpy_agent_sealed.keys import signing_key, verify_key
from tritonpy_agent_sealed.manifest import MANIFEST, SIGNATURE, Manifest, SealedFile, read, write

MANY = Manifest("m", (SealedFile("1/model.onnx", "00"), SealedFile("config.pbtxt", "11")), "abcd")


def test_what_is_signed_is_read(keys, tmp_path):
    write(tmp_path, MANY, signing_key(keys.at("signing.pem")))
    assert read(tmp_path, "m", [verify_key(keys.at("verify.pem"))]) == MANY


def test_a_folder_without_one_is_not_sealed(keys, tmp_path):
    with pytest.raises(InvalidArgument, match=r"^it is not sealed: sealed\.json: No such file or directory$"):
        read(tmp_path, "m", [verify_key(keys.at("verify.pem"))])


def test_a_signature_of_something_else_is_none(keys, tmp_path):
    key = signing_key(keys.at("signing.pem"))
    write(tmp_path, MANY, key)
    (tmp_path / SIGNATURE).write_bytes(key.sign((tmp_path / MANIFEST).read_bytes()))
    with pytest.raises(InvalidArgument, match="is not the signature"):
        read(tmp_path, "m", [verify_key(keys.at("verify.pem"))])


def test_with_nobody_to_trust_nothing_is_read(keys, tmp_path):
    write(tmp_path, MANY, signing_key(keys.at("signing.pem")))
    with pytest.raises(InvalidArgument, match="is not the signature"):
        read(tmp_path, "m", [])


def test_a_list_of_another_form_is_of_another_version(keys, tmp_path, monkeypatch):
    monkeypatch.setattr("msgspec.json.encode", lambda _manifest: b'{"model": "m", "files": [], "more": 1}')
    write(tmp_path, MANY, signing_key(keys.at("signing.pem")))
    with pytest.raises(InvalidArgument, match=r"^sealed\.json is of another version of this agent: .*more"):
        read(tmp_path, "m", [verify_key(keys.at("verify.pem"))])
