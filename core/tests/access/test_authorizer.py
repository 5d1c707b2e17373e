from __future__ import annotations

import logging

import pytest

from tritonpy import (
    Authenticator,
    CustomMetrics,
    ModelMetrics,
    NoOptions,
    PermissionDenied,
    Principal,
    Unauthenticated,
    Verb,
)
from tritonpy.access.authorizer import Authorizer
from tritonpy.access.denials import Denials


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
    return Authorizer(named, opened, Denials(ModelMetrics(CustomMetrics()), logging.getLogger("tritonpy.access")))


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
def test_a_principal_without_the_right_is_refused_and_credentials_are_not_logged(key, verb, model, error, caplog):
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
