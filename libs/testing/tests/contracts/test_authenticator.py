from __future__ import annotations

from typing import ClassVar

import pytest

from tritonpy import hookimpl
from tritonpy.auth import Authenticator, Principal, Verb
from tritonpy_testing import AuthenticatorContract


class Key(Authenticator):
    def authenticate(self, headers):
        return Principal("anna") if headers.get("x-key") == "secret" else None

    def allows(self, principal, verb, model):
        return verb is not Verb.ADMIN


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_authenticators():
        return {"key": Key}


class KeyContract(AuthenticatorContract):
    plugin_class = Key
    known_headers: ClassVar = {"x-key": "secret"}
    unknown_headers: ClassVar = {"x-key": "guess"}
    denied = (Verb.ADMIN, "")


class TestKey(KeyContract):
    plugin = Plugin
    name = "key"


class Open(Key):
    def authenticate(self, headers):
        return Principal("anybody")


class Shut(Key):
    def authenticate(self, headers):
        return None


class Anonymous(Key):
    def authenticate(self, headers):
        return Principal("") if super().authenticate(headers) else None


class Demanding(Key):
    def authenticate(self, headers):
        return Principal("anna") if headers["x-key"] == "secret" else None


class Vague(Key):
    def allows(self, principal, verb, model):
        return None


class Generous(Key):
    def allows(self, principal, verb, model):
        return True


BROKEN = {
    Open: "test_unknown_credentials_give_no_principal",
    Shut: "test_known_credentials_give_a_principal_with_a_name",
    Anonymous: "test_known_credentials_give_a_principal_with_a_name",
    Demanding: "test_malformed_headers_are_no_error",
    Vague: "test_rights_are_booleans",
    Generous: "test_rights_are_booleans",
}


@pytest.mark.parametrize("authenticator", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_authenticator_fails(failures, authenticator):
    contract = type("Broken", (KeyContract,), {"plugin_class": authenticator})
    assert BROKEN[authenticator] in failures(contract)
