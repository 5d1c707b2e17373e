from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from tritonpy import InvalidArgument
from tritonpy_agent_sealed.keys import (
    decryption_key,
    encryption_key,
    environment_location,
    key_id,
    new_encryption_key,
    signing_key,
    verify_key,
)


def test_a_key_pair_signs_and_verifies(keys):
    signature = signing_key(keys.at("signing.pem")).sign(b"text")
    verify_key(keys.at("verify.pem")).verify(signature, b"text")


def test_a_key_may_come_from_the_environment(keys, monkeypatch):
    monkeypatch.setenv("SOME_KEY", (keys.folder / "encryption.key").read_text())
    assert encryption_key(environment_location("SOME_KEY")) == encryption_key(
        keys.at("encryption.key")
    )


def test_a_variable_that_is_not_set_is_named():
    with pytest.raises(InvalidArgument, match="the environment variable NO_SUCH_KEY is not set"):
        encryption_key(environment_location("NO_SUCH_KEY"))


@pytest.mark.parametrize("read", [signing_key, verify_key, encryption_key])
def test_a_missing_file_is_named(read):
    with pytest.raises(InvalidArgument, match=r"the key /no/such/key cannot be read: No such file"):
        read("/no/such/key")


@pytest.mark.parametrize("read", [signing_key, verify_key, encryption_key])
def test_a_file_without_a_key_is_named(read, tmp_path):
    (tmp_path / "key").write_bytes(b"\xff!")
    with pytest.raises(InvalidArgument, match=r"/key holds no (private |public )?key"):
        read(str(tmp_path / "key"))


def test_a_key_of_wrong_length_is_rejected_without_its_content(tmp_path):
    (tmp_path / "key").write_bytes(base64.b64encode(b"secret"))
    with pytest.raises(InvalidArgument, match=r"/key holds a key of 6 bytes, it must have 32$"):
        encryption_key(str(tmp_path / "key"))


def test_keys_of_another_kind_are_rejected(tmp_path):
    key = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "private").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    (tmp_path / "public").write_bytes(
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    for read, name in ((signing_key, "private"), (verify_key, "public")):
        with pytest.raises(InvalidArgument, match="holds a key that is not of Ed25519"):
            read(str(tmp_path / name))


def test_the_decryption_key_is_found_by_its_id(tmp_path):
    locations = [tmp_path / str(number) for number in range(3)]
    for place in locations:
        place.write_bytes(new_encryption_key())
    known = list(map(str, locations))
    for place in known:
        key = encryption_key(place)
        assert decryption_key(key_id(key), known) == key
