from __future__ import annotations

import pytest

from tritonpy_auth_jwt.key_set import parse_key_set

from .signing import key_set, public_jwk, secret_jwk

ALL = ("HS256", "RS256", "PS256", "ES256", "EdDSA")


def test_a_key_is_found_by_its_algorithm_and_name():
    text = key_set(
        public_jwk("RSA", "r"), public_jwk("EC", "e"), public_jwk("OKP", "o"), secret_jwk(kid="s")
    )
    keys = parse_key_set(text, ALL)
    found = {algorithm: [key.key_id for key in keys.find(algorithm, None)] for algorithm in ALL}
    assert found == {"HS256": ["s"], "RS256": ["r"], "PS256": ["r"], "ES256": ["e"], "EdDSA": ["o"]}
    assert keys.find("RS256", "r")
    assert keys.find("RS256", "e") == keys.find("RS384", "r") == []


def test_a_key_is_only_used_for_its_declared_purpose():
    text = key_set(
        public_jwk("RSA", "a", alg="PS256"),
        public_jwk("RSA", "b", use="enc"),
        public_jwk("RSA", "c", use="sig"),
    )
    keys = parse_key_set(text, ("RS256", "PS256"))
    assert [key.key_id for key in keys.find("RS256", None)] == ["c"]
    assert [key.key_id for key in keys.find("PS256", None)] == ["a", "c"]


def test_keys_that_do_not_fit_are_ignored():
    text = key_set(
        public_jwk("RSA"),
        {"kty": "new"},
        {"kty": "RSA", "n": "x"},
        {},
        public_jwk("EC", crv="P-384"),
    )
    assert len(parse_key_set(text, ("RS256", "ES256")).find("RS256", None)) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a JSON Web Key Set"),
        ('{"keys": {}}', "not a JSON Web Key Set"),
        (key_set(), "none of its 0 keys fits RS256"),
        (key_set(public_jwk("EC")), "none of its 1 keys fits RS256"),
        (key_set({"kty": "RSA", "n": 7}), "none of its 1 keys fits"),
    ],
)
def test_invalid_key_sets_are_rejected(text, words):
    with pytest.raises(ValueError, match=words):
        parse_key_set(text, ("RS256",))


def test_a_short_secret_is_rejected_without_its_content():
    with pytest.raises(ValueError, match="shorter than 32 bytes") as caught:
        parse_key_set(key_set(secret_jwk(b"short")), ("HS256",))
    assert "short" not in str(caught.value).replace("shorter", "")
