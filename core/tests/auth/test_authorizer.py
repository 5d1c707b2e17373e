from __future__ import annotations

import logging
import re
import subprocess
import sys

import pytest

from tritonpy import Options, PermissionDenied, Unauthenticated, hookimpl
from tritonpy.auth import Authenticator, Principal, Verb
from tritonpy.auth.authorizer import (
    MAX_CREDENTIAL_LENGTH,
    Authorizer,
    Rights,
    bearer_token,
    joined_headers,
)
from tritonpy.auth.denials import Denials
from tritonpy.metrics import CustomMetrics, ModelMetrics
from tritonpy.plugins import NoOptions, PluginError, install_command, make_plugin_manager
from tritonpy.server.factories import make_authorizer
from tritonpy_config.server import InvalidServerConfig, decode_server_config


class Keys(Authenticator):
    def __init__(self, **names):
        super().__init__(NoOptions())
        self.names = names
        self.life = []

    def authenticate(self, headers):
        name = self.names.get(headers.get("x-api-key"))
        return Principal(name) if name else None

    def allows(self, principal, verb, model):
        return (principal.name, verb, model) == ("anna", Verb.INFER, "digits")

    def start(self):
        self.life.append("start")

    def close(self):
        self.life.append("close")


class Broken(Keys):
    def authenticate(self, headers):
        raise RuntimeError(headers["x-api-key"])


class BrokenAuthorization(Keys):
    def allows(self, principal, verb, model):
        raise RuntimeError(principal.name)


def authorizer(*authenticators, opened=("health",)):
    named = {str(number): each for number, each in enumerate(authenticators)}
    return Authorizer(
        named, opened, Denials(ModelMetrics(CustomMetrics()), logging.getLogger("tritonpy.auth"))
    )


ANNA = Keys(a="anna", b="bert")


def test_a_principal_with_the_right_is_admitted():
    assert authorizer(ANNA).admit({"x-api-key": "a"}, Verb.INFER, "digits").name == "anna"


@pytest.mark.parametrize(
    ("key", "verb", "model", "error"),
    [
        ("a", Verb.INFER, "other", PermissionDenied),
        ("a", Verb.READ, "digits", PermissionDenied),
        ("a", Verb.INFER, "", PermissionDenied),
        ("b", Verb.INFER, "digits", PermissionDenied),
        ("c", Verb.INFER, "digits", Unauthenticated),
        (None, Verb.INFER, "digits", Unauthenticated),
    ],
)
def test_a_principal_without_the_right_is_refused_and_credentials_are_not_logged(
    key, verb, model, error, caplog
):
    headers = {} if key is None else {"x-api-key": key}
    with pytest.raises(error) as caught:
        authorizer(Keys(a="anna", b="bert")).admit(headers, verb, model)
    assert len(caplog.records) == 1
    assert f"'{key}'" not in caught.value.message + caplog.records[0].getMessage()


def test_the_first_authenticator_that_knows_the_principal_decides():
    first, second = Keys(a="anna"), Keys(a="other", c="anna")
    both = authorizer(first, second)
    assert both.identify({"x-api-key": "a"}, Verb.INFER).name == "anna"
    assert both.admit({"x-api-key": "c"}, Verb.INFER, "digits").name == "anna"


def test_a_failing_authenticator_identifies_no_principal(caplog):
    both = authorizer(Broken(), ANNA)
    assert both.admit({"x-api-key": "a"}, Verb.INFER, "digits").name == "anna"
    with pytest.raises(Unauthenticated):
        authorizer(Broken()).admit({"x-api-key": "secret"}, Verb.INFER, "digits")
    assert "secret" not in caplog.text


def test_failing_authorization_denies_everything():
    with pytest.raises(PermissionDenied):
        authorizer(BrokenAuthorization(a="anna")).admit({"x-api-key": "a"}, Verb.INFER, "digits")


def test_public_endpoints_need_no_credentials():
    assert not authorizer(ANNA).guards("health")
    assert authorizer(ANNA).guards("metrics")
    assert authorizer(ANNA, opened=()).guards("health")


def test_authenticators_start_and_close_with_the_server():
    own = Keys()
    kept = authorizer(own)
    kept.start()
    kept.close()
    assert own.life == ["start", "close"]


@pytest.mark.parametrize(
    ("patterns", "model", "allowed"),
    [
        (["digits"], "digits", True),
        (["digits"], "digits2", False),
        (["digits"], "Digits", False),
        (["digits*"], "digits2", True),
        (["a", "b*"], "bee", True),
        (["?"], "é", True),
        (["café"], "cafe\u0301", False),  # looks the same but is another name
        (["*"], "", True),
        (["digits*"], "", False),
        (["*"], "a\nb", True),
        (["digits"], "digits\n", False),
        (["a.c"], "abc", False),
        (["../x"], "x", False),
        (["open*"], "open/../closed", False),
        (["*"], "a/b", False),
        (["*"], "models/a::digits", True),
        (["*::digits"], "models/a::digits", True),
        (["digits"], "models/a::digits", False),
        (["*"], "models/a::../digits", False),
        ([], "digits", False),
    ],
)
def test_patterns_cover_whole_names(patterns, model, allowed):
    assert Rights({Verb.INFER: patterns}).allow(Verb.INFER, model) is allowed


def test_no_verb_includes_another():
    for verb in Verb:
        rights = Rights({verb: ["*"]})
        assert [other for other in Verb if rights.allow(other, "m")] == [verb]


@pytest.mark.parametrize(
    ("value", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Bearer", None),
        ("Bearer ", None),
        ("Basic abc", None),
        ("", None),
        ("Bearer a, Bearer b", "a, Bearer b"),  # two headers become one invalid token
        ("Bearer " + "a" * MAX_CREDENTIAL_LENGTH, "a" * MAX_CREDENTIAL_LENGTH),
        ("Bearer " + "a" * (MAX_CREDENTIAL_LENGTH + 1), None),
    ],
)
def test_the_bearer_s_token(value, token):
    assert bearer_token({"authorization": value}) == token


def test_no_header_no_token():
    assert bearer_token({}) is None


def test_headers_of_one_name_are_joined_with_a_comma():
    pairs = [("X-Api-Key", "a"), ("other", "1"), ("x-api-key", "b")]
    assert joined_headers(pairs) == {"x-api-key": "a, b", "other": "1"}


class KeyOptions(Options, frozen=True):
    key: str


class Key(Authenticator):
    Options = KeyOptions

    def authenticate(self, headers):
        return Principal(self.options.key) if headers.get("x") == self.options.key else None


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_authenticators():
        return {"one": Key, "other": Key}


def build(raw):
    manager = make_plugin_manager(discover=False)
    manager.register(Plugin, "test")
    return make_authorizer(decode_server_config(raw), manager, ModelMetrics(CustomMetrics()))


def test_authenticators_are_made_of_their_options():
    kept = build({"auth": {"one": {"key": "a"}, "other": {"key": "b"}}, "access": {"open": []}})
    assert kept.admit({"x": "a"}, Verb.ADMIN).name == "a"
    assert kept.admit({"x": "b"}, Verb.INFER, "m").name == "b"
    assert kept.guards("health")


def test_an_unknown_endpoint_cannot_be_public():
    with pytest.raises(InvalidServerConfig, match="open"):
        build({"access": {"open": ["inference"]}})


def test_wrong_options_and_missing_plugins_are_named():
    with pytest.raises(InvalidServerConfig, match=r"auth\.one.*'key' is missing"):
        build({"auth": {"one": {}}})
    with pytest.raises(PluginError, match=re.escape(install_command("tritonpy-auth-jwt"))):
        build({"auth": {"jwt": {}}})


def test_a_server_without_authenticators_imports_no_authorizer():
    script = """
import sys
from tritonpy_config.server import decode_server_config
from tritonpy.server.server import build
import tritonpy_frontend_http.frontend, tritonpy_frontend_grpc.grpcio.frontend, tritonpy_metrics_prometheus.frontend
build(decode_server_config({"frontends": {"http": {"port": 0}, "grpc": {"port": 0}, "metrics": {"port": 0}}}))
print(sorted(name for name in sys.modules if name.startswith(("tritonpy.auth.", "tritonpy_auth_api_keys.", "tritonpy_auth_jwt.", "jwt"))
    or name.endswith((".access", ".guarded", ".guard"))))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['tritonpy.auth.denials', 'tritonpy.auth.restriction']"
