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
from tritonpy.access.denials import Denials
from tritonpy.access.gatekeeper import Gatekeeper


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


class BrokenJudge(Keys):
    def allows(self, principal, verb, model):
        raise RuntimeError(principal.name)


def gatekeeper(*authenticators, opened=("health",)):
    named = {str(number): each for number, each in enumerate(authenticators)}
    return Gatekeeper(named, opened, Denials(ModelMetrics(CustomMetrics()), logging.getLogger("tritonpy.access")))


ANNA = Keys(a="anna", b="bert")


def test_who_may_is_let_in():
    assert gatekeeper(ANNA).admit({"x-api-key": "a"}, Verb.INFER, "digits").name == "anna"


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
def test_who_may_not_is_refused_and_no_credential_is_told(key, verb, model, error, caplog):
    headers = {} if key is None else {"x-api-key": key}
    with pytest.raises(error) as caught:
        gatekeeper(Keys(a="anna", b="bert")).admit(headers, verb, model)
    assert len(caplog.records) == 1
    assert f"'{key}'" not in caught.value.message + caplog.records[0].getMessage()


def test_the_first_that_knows_the_caller_decides():
    first, second = Keys(a="anna"), Keys(a="other", c="anna")
    both = gatekeeper(first, second)
    assert both.identify({"x-api-key": "a"}, Verb.INFER).name == "anna"
    assert both.admit({"x-api-key": "c"}, Verb.INFER, "digits").name == "anna"


def test_an_authenticator_that_raises_knows_nobody(caplog):
    both = gatekeeper(Broken(), ANNA)
    assert both.admit({"x-api-key": "a"}, Verb.INFER, "digits").name == "anna"
    with pytest.raises(Unauthenticated):
        gatekeeper(Broken()).admit({"x-api-key": "secret"}, Verb.INFER, "digits")
    assert "secret" not in caplog.text


def test_a_judge_that_raises_allows_nothing():
    with pytest.raises(PermissionDenied):
        gatekeeper(BrokenJudge(a="anna")).admit({"x-api-key": "a"}, Verb.INFER, "digits")


def test_doors_may_be_left_open():
    assert not gatekeeper(ANNA).guards("health")
    assert gatekeeper(ANNA).guards("metrics")
    assert gatekeeper(ANNA, opened=()).guards("health")


def test_authenticators_live_with_the_server():
    own = Keys()
    kept = gatekeeper(own)
    kept.start()
    kept.close()
    assert own.life == ["start", "close"]
