from __future__ import annotations

import hmac
import os
import tempfile
import time
from pathlib import Path
from typing import ClassVar

import pytest

import tritonpy_auth_api_keys
from tritonpy import StartupError
from tritonpy.auth import Verb
from tritonpy_auth_api_keys.authenticator import ApiKeyOptions, ApiKeys
from tritonpy_auth_api_keys.key import new_key
from tritonpy_auth_api_keys.key_file import KeyEntry, format_entry
from tritonpy_testing import AuthenticatorContract

WAIT_S = 20
ANNA, BERT = new_key(), new_key()
SHARED = Path(tempfile.mkdtemp(prefix="tritonpy-keys-")) / "keys.toml"


def entry(key, name="anna", **rights):
    return format_entry(key.id, KeyEntry(name, key.hash, **rights))


SHARED.write_text(entry(ANNA, infer=("*",), read=("digits*",)))


class TestContract(AuthenticatorContract):
    plugin_class = ApiKeys
    plugin = tritonpy_auth_api_keys
    name = "api_keys"
    options: ClassVar = {"file": str(SHARED)}
    known_headers: ClassVar = {"x-api-key": ANNA.text}
    unknown_headers: ClassVar = {"x-api-key": BERT.text}
    denied = (Verb.ADMIN, "")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "keys.toml"
    path.write_text(entry(ANNA, infer=("digits*",)))
    return path


@pytest.fixture
def keys(file):
    authenticator = ApiKeys(ApiKeyOptions(file, 0.01))
    authenticator.start()
    yield authenticator
    authenticator.close()


def principal_name(authenticator, **headers):
    principal = authenticator.authenticate(
        {name.replace("_", "-"): value for name, value in headers.items()}
    )
    return None if principal is None else principal.name


def wait_until(condition):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.005)


def test_a_key_is_taken_from_either_header(keys):
    assert (
        principal_name(keys, x_api_key=ANNA.text)
        == principal_name(keys, authorization=f"Bearer {ANNA.text}")
        == f"anna ({ANNA.id})"
    )


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x_api_key": BERT.text},
        {"x_api_key": ANNA.text[:-1] + ("a" if ANNA.text[-1] != "a" else "b")},
        {"x_api_key": f"{ANNA.text}, {ANNA.text}"},  # sent twice
        {"x_api_key": f"{ANNA.text}, {BERT.text}"},
        {"x_api_key": "a" * 10_000_000},
        {"authorization": f"Basic {ANNA.text}"},
        {"authorization": ANNA.text},
        {"authorization": f"Bearer {ANNA.text}, Bearer {ANNA.text}"},
        # Only the key in X-API-Key counts.
        {"x_api_key": BERT.text, "authorization": f"Bearer {ANNA.text}"},
        {"x_api_key": "\udcff\x00", "authorization": "Bearer \udcff"},
    ],
)
def test_other_headers_are_rejected(keys, headers):
    assert principal_name(keys, **headers) is None


def test_a_hash_is_not_a_key(keys):
    assert principal_name(keys, x_api_key=ANNA.hash) is None
    assert principal_name(keys, x_api_key=f"tpy_{ANNA.id}_{'0' * 43}") is None


def test_rights_are_those_of_the_entry(keys):
    principal = keys.authenticate({"x-api-key": ANNA.text})
    assert keys.allows(principal, Verb.INFER, "digits2")
    assert not keys.allows(principal, Verb.INFER, "other")
    assert not keys.allows(principal, Verb.READ, "digits2")


@pytest.mark.parametrize("key", [ANNA, BERT, new_key()], ids=["known", "unknown", "another"])
def test_every_key_costs_one_comparison_in_constant_time(keys, monkeypatch, key):
    compared, compare = [], hmac.compare_digest
    monkeypatch.setattr(
        hmac, "compare_digest", lambda *pair: compared.append(pair) or compare(*pair)
    )
    keys.authenticate({"x-api-key": key.text})
    assert len(compared) == 1


def test_a_key_expires_at_the_time_of_its_entry(file):
    file.write_text(entry(ANNA) + "expires = 2030-01-01T00:00:00Z\n")
    now = 1893455999.0
    keys = ApiKeys(ApiKeyOptions(file), lambda: now)
    assert principal_name(keys, x_api_key=ANNA.text)
    now += 1
    assert principal_name(keys, x_api_key=ANNA.text) is None


def test_a_new_file_takes_effect_as_a_whole(file, keys):
    other = file.with_name("new.toml")
    other.write_text(entry(BERT, "bert"))
    os.replace(other, file)
    wait_until(lambda: principal_name(keys, x_api_key=BERT.text))
    assert principal_name(keys, x_api_key=ANNA.text) is None


def test_an_empty_file_removes_every_key(file, keys):
    file.write_text("")
    wait_until(lambda: principal_name(keys, x_api_key=ANNA.text) is None)


@pytest.mark.parametrize(
    "spoil", [lambda path: path.write_text("[keys"), Path.unlink], ids=["broken", "removed"]
)
def test_an_unreadable_file_changes_nothing_and_is_logged(file, keys, spoil, caplog):
    spoil(file)
    wait_until(lambda: "read failed, the previous value stays in use" in caplog.text)
    assert principal_name(keys, x_api_key=ANNA.text)
    assert str(file) in caplog.text
    file.write_text(entry(BERT, "bert"))
    wait_until(lambda: principal_name(keys, x_api_key=BERT.text))


@pytest.mark.parametrize("content", [None, b"[keys", b"\xff"])
def test_a_server_does_not_start_without_its_keys(tmp_path, content):
    file = tmp_path / "keys.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(StartupError, match="tritonpy api-key new") as caught:
        ApiKeys(ApiKeyOptions(file))
    assert str(file) in str(caught.value)
