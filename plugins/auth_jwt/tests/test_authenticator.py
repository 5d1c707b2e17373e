from __future__ import annotations

import os
import tempfile
import threading
import time
from pathlib import Path
from typing import ClassVar

import pytest

import tritonpy_auth_jwt
from tritonpy import StartupError, Verb
from tritonpy.testing import AuthenticatorContract
from tritonpy_auth_jwt.authenticator import JwtAuthenticator
from tritonpy_auth_jwt.verifier import Verifier

from .identity_provider import IdentityProvider
from .signing import claims, key_set, options, private_key, public_jwk, token

PATIENCE_S = 20
SET = key_set(public_jwk("RSA", "r"))
SHARED = Path(tempfile.mkdtemp(prefix="tritonpy-jwks-")) / "set.json"
SHARED.write_text(SET)


class TestContract(AuthenticatorContract):
    plugin_class = JwtAuthenticator
    plugin = tritonpy_auth_jwt
    name = "jwt"
    options: ClassVar = {"algorithms": ["RS256"], "jwks_file": str(SHARED)}
    known_headers: ClassVar = {"authorization": f"Bearer {token()}"}
    unknown_headers: ClassVar = {"authorization": f"Bearer {token(key=private_key('RSA', 1))}"}
    denied = (Verb.READ, "digits")


def bearer(text):
    return {"authorization": f"Bearer {text}"}


def until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.005)


@pytest.fixture
def provider():
    with IdentityProvider() as running:
        running.body = SET
        yield running


@pytest.fixture
def start(provider):
    started = []

    def go(**more):
        chosen = options(jwks_file=None, jwks_url=provider.url, **{"pause_s": 0.01, "refresh_s": 3600, **more})
        authenticator = JwtAuthenticator(chosen)
        authenticator.start()
        started.append(authenticator)
        return authenticator

    yield go
    for authenticator in started:
        authenticator.close()


def test_rights_come_from_the_claim():
    own = JwtAuthenticator(options(jwks_file=SHARED, rights_claim="scope"))
    principal = own.authenticate(bearer(token(claims(scope="openid infer:digits*"))))
    assert principal.name == "anna"
    assert own.allows(principal, Verb.INFER, "digits2")
    assert not own.allows(principal, Verb.INFER, "other")
    assert not own.allows(principal, Verb.READ, "digits2")


def test_a_good_token_is_verified_once_until_it_expires(monkeypatch):
    verified, verify = [], Verifier.claims
    monkeypatch.setattr(Verifier, "claims", lambda self, text: verified.append(text) or verify(self, text))
    now = time.time()
    own = JwtAuthenticator(options(jwks_file=SHARED), lambda: now)
    good = token(claims(exp=int(now) + 100))
    assert [own.authenticate(bearer(good)).name for _ in range(3)] == ["anna"] * 3
    assert len(verified) == 1
    now += 101
    own.authenticate(bearer(good))
    assert len(verified) == 2


def test_a_bad_token_is_not_remembered():
    own = JwtAuthenticator(options(jwks_file=SHARED))
    assert own.authenticate(bearer(token(claims(sub="")))) is None
    assert own.authenticate(bearer(token() + "A")) is None
    assert len(own._good) == 0


def test_remembered_tokens_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr("tritonpy_auth_jwt.authenticator._MOST_REMEMBERED", 3)
    own = JwtAuthenticator(options(jwks_file=SHARED))
    for name in "abcdef":
        assert own.authenticate(bearer(token(claims(sub=name))))
    assert len(own._good) == 3


def test_keys_are_fetched_at_start(start):
    assert start().authenticate(bearer(token(kid="r"))).name == "anna"


def test_keys_rotate(start, provider):
    own = start()
    old, new = token(kid="r"), token(key=private_key("RSA", 1), kid="s")
    assert own.authenticate(bearer(old))
    provider.body = key_set(public_jwk("RSA", "s", number=1))
    assert own.authenticate(bearer(new)) is None  # it asks for the keys, and does not wait for them
    until(lambda: own.authenticate(bearer(new)))
    assert own.authenticate(bearer(old)) is None  # remembered, but its key is gone


def test_a_provider_that_does_not_answer_stops_nobody(start, provider):
    own = start()
    provider.stuck.clear()
    assert own.authenticate(bearer(token(kid="unknown"))) is None
    until(lambda: provider.asked == 2)
    done = threading.Event()
    threading.Thread(target=lambda: own.authenticate(bearer(token(kid="r"))) and done.set()).start()
    assert done.wait(PATIENCE_S)
    provider.stuck.set()


@pytest.mark.parametrize(("status", "body"), [(500, SET), (200, "{}"), (200, "<html>"), (302, SET)])
def test_a_set_that_cannot_be_read_changes_nothing(start, provider, status, body, caplog):
    own = start(refresh_s=0.01)
    provider.status, provider.body = status, body
    until(lambda: "not read, what was read before stays in force" in caplog.text)
    assert own.authenticate(bearer(token(kid="r")))


def test_without_a_first_set_nobody_is_known_until_it_comes(start, provider, caplog):
    provider.status = 500
    own = start()
    assert own.authenticate(bearer(token())) is None
    assert provider.url in caplog.text
    provider.status = 200
    until(lambda: own.authenticate(bearer(token())))


def test_tokens_with_unknown_keys_cannot_make_the_server_ask_and_ask(start, provider):
    own = start(pause_s=3600)
    for number in range(100):
        assert own.authenticate(bearer(token(kid=f"unknown {number}"))) is None
    assert provider.asked == 1


def test_a_file_is_followed(tmp_path, monkeypatch):
    monkeypatch.setattr("tritonpy_auth_jwt.authenticator._FILE_INTERVAL_S", 0.01)
    file = tmp_path / "set.json"
    file.write_text(SET)
    os.utime(file, (1, 1))  # both sets are of one length: written within one tick they would look the same
    own = JwtAuthenticator(options(jwks_file=file))
    own.start()
    try:
        new = token(key=private_key("RSA", 1), kid="s")
        file.write_text(key_set(public_jwk("RSA", "s", number=1)))
        until(lambda: own.authenticate(bearer(new)))
    finally:
        own.close()


@pytest.mark.parametrize("content", [None, b"{}", b"\xff"])
def test_a_server_does_not_start_without_its_file(tmp_path, content):
    file = tmp_path / "set.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(StartupError, match=r"auth\.jwt: cannot read the key set"):
        JwtAuthenticator(options(jwks_file=file))
