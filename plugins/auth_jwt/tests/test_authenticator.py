from __future__ import annotations

import os
import tempfile
import threading
import time
from pathlib import Path
from typing import ClassVar

import pytest

import tritonpy_auth_jwt
from tritonpy import StartupError
from tritonpy.auth import Verb
from tritonpy_auth_jwt.authenticator import JwtAuthenticator
from tritonpy_auth_jwt.verifier import Verifier
from tritonpy_testing import AuthenticatorContract

from .identity_provider import IdentityProvider
from .signing import claims, key_set, options, private_key, public_jwk, token

WAIT_S = 20
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


def wait_until(condition):
    deadline = time.monotonic() + WAIT_S
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
        chosen = options(
            jwks_file=None, jwks_url=provider.url, **{"pause_s": 0.01, "refresh_s": 3600, **more}
        )
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


def test_a_valid_token_is_verified_once_until_it_expires(monkeypatch):
    verified, verify = [], Verifier.claims
    monkeypatch.setattr(
        Verifier, "claims", lambda self, text: verified.append(text) or verify(self, text)
    )
    now = time.time()
    own = JwtAuthenticator(options(jwks_file=SHARED), lambda: now)
    good = token(claims(exp=int(now) + 100))
    assert [own.authenticate(bearer(good)).name for _ in range(3)] == ["anna"] * 3
    assert len(verified) == 1
    now += 101
    own.authenticate(bearer(good))
    assert len(verified) == 2


def test_an_invalid_token_is_not_cached():
    own = JwtAuthenticator(options(jwks_file=SHARED))
    assert own.authenticate(bearer(token(claims(sub="")))) is None
    assert own.authenticate(bearer(token() + "A")) is None
    assert len(own._verified_principals) == 0


def test_the_token_cache_is_bounded(monkeypatch):
    monkeypatch.setattr("tritonpy_auth_jwt.authenticator._MAX_REMEMBERED", 3)
    own = JwtAuthenticator(options(jwks_file=SHARED))
    for name in "abcdef":
        assert own.authenticate(bearer(token(claims(sub=name))))
    assert len(own._verified_principals) == 3


def test_keys_are_fetched_at_start(start):
    assert start().authenticate(bearer(token(kid="r"))).name == "anna"


def test_keys_rotate(start, provider):
    own = start()
    old, new = token(kid="r"), token(key=private_key("RSA", 1), kid="s")
    assert own.authenticate(bearer(old))
    provider.body = key_set(public_jwk("RSA", "s", number=1))
    assert own.authenticate(bearer(new)) is None  # it requests a refresh and does not wait for it
    wait_until(lambda: own.authenticate(bearer(new)))
    assert own.authenticate(bearer(old)) is None  # cached, but its key was removed


def test_a_stuck_provider_does_not_block_requests(start, provider):
    own = start()
    provider.stuck.clear()
    assert own.authenticate(bearer(token(kid="unknown"))) is None
    wait_until(lambda: provider.request_count == 2)
    done = threading.Event()
    threading.Thread(target=lambda: own.authenticate(bearer(token(kid="r"))) and done.set()).start()
    assert done.wait(WAIT_S)
    provider.stuck.set()


@pytest.mark.parametrize(("status", "body"), [(500, SET), (200, "{}"), (200, "<html>"), (302, SET)])
def test_an_unreadable_set_changes_nothing(start, provider, status, body, caplog):
    own = start(refresh_s=0.01)
    provider.status, provider.body = status, body
    wait_until(lambda: "read failed, the previous value stays in use" in caplog.text)
    assert own.authenticate(bearer(token(kid="r")))


def test_no_token_is_valid_before_the_first_set(start, provider, caplog):
    provider.status = 500
    own = start()
    assert own.authenticate(bearer(token())) is None
    assert provider.url in caplog.text
    provider.status = 200
    wait_until(lambda: own.authenticate(bearer(token())))


def test_tokens_with_unknown_keys_cause_few_fetches(start, provider):
    own = start(pause_s=3600)
    for number in range(100):
        assert own.authenticate(bearer(token(kid=f"unknown {number}"))) is None
    assert provider.request_count == 1


def test_a_changed_file_is_reloaded(tmp_path, monkeypatch):
    monkeypatch.setattr("tritonpy_auth_jwt.authenticator._FILE_INTERVAL_S", 0.01)
    file = tmp_path / "set.json"
    file.write_text(SET)
    # Both sets have equal length: within one clock tick they would look the same.
    os.utime(file, (1, 1))
    own = JwtAuthenticator(options(jwks_file=file))
    own.start()
    try:
        new = token(key=private_key("RSA", 1), kid="s")
        file.write_text(key_set(public_jwk("RSA", "s", number=1)))
        wait_until(lambda: own.authenticate(bearer(new)))
    finally:
        own.close()


@pytest.mark.parametrize("content", [None, b"{}", b"\xff"])
def test_a_server_does_not_start_without_its_file(tmp_path, content):
    file = tmp_path / "set.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(StartupError, match=r"auth\.jwt: cannot read the key set"):
        JwtAuthenticator(options(jwks_file=file))
