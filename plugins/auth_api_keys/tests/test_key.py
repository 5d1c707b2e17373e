from __future__ import annotations

import hmac

import pytest

from tritonpy_auth_api_keys.key import hash_key, key_id, matches_hash, new_key


def test_a_new_key_has_an_id_and_matches_its_hash():
    key = new_key()
    assert key_id(key.text) == key.id
    assert key.hash == hash_key(key.text)
    assert matches_hash(key.text, key.hash)
    assert not matches_hash(new_key().text, key.hash)
    assert key.text.removeprefix(f"tpy_{key.id}_") not in key.hash


def test_keys_are_unique():
    assert len({new_key().text for _ in range(100)}) == 100


@pytest.mark.parametrize(
    "change",
    [
        lambda key: "",
        lambda key: key[:-1],
        lambda key: key + "a",
        lambda key: key + "\n",
        lambda key: f"{key}, {key}",
        lambda key: key.upper(),
        lambda key: key.replace("_", "-", 1),
        lambda key: key[:-1] + "ä",
        lambda key: "tpy_" + "é" * 12 + key[16:],
        lambda key: " " + key,
        lambda key: key * 1000,
    ],
)
def test_text_that_is_not_a_key_has_no_id(change):
    assert key_id(change(new_key().text)) is None


def test_hashes_are_compared_in_constant_time(monkeypatch):
    compared = []
    monkeypatch.setattr(hmac, "compare_digest", lambda *pair: compared.append(pair) or True)
    assert matches_hash("text", "hash")
    assert compared == [(hash_key("text"), "hash")]
