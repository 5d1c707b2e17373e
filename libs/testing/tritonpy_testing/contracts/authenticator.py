"""The contract of authenticators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tritonpy.auth import Authenticator, Principal, Verb
from tritonpy_testing.contracts.plugin import PluginContract


class AuthenticatorContract(PluginContract):
    """The contract of `Authenticator`. Set `plugin_class`, `known_headers` and `unknown_headers`.

    `denied` is a verb and a model that the known principal has no right to (None: it has every
    right).
    """

    interface = Authenticator
    hook = "tritonpy_authenticators"
    known_headers: ClassVar[Mapping[str, str]]
    unknown_headers: ClassVar[Mapping[str, str]]
    denied: ClassVar[tuple[Verb, str] | None] = None

    def make(self) -> Authenticator:
        """Return a new authenticator."""
        authenticator = self.plugin_class(self.make_options())
        assert isinstance(authenticator, Authenticator)
        return authenticator

    def test_known_credentials_give_a_principal_with_a_name(self) -> None:
        principal = self.make().authenticate(self.known_headers)
        assert isinstance(principal, Principal), f"the known headers returned {principal!r}"
        assert principal.name, "the principal has no name"

    def test_unknown_credentials_give_no_principal(self) -> None:
        assert self.make().authenticate(self.unknown_headers) is None

    def test_malformed_headers_are_no_error(self) -> None:
        for headers in ({}, {"authorization": ""}, {"authorization": "\xff nonsense"}):
            principal = self.make().authenticate(headers)
            assert principal is None or isinstance(principal, Principal)

    def test_it_authenticates_between_start_and_close_and_closes_without_start(self) -> None:
        self.make().close()
        authenticator = self.make()
        authenticator.start()
        try:
            assert isinstance(authenticator.authenticate(self.known_headers), Principal)
        finally:
            authenticator.close()
            authenticator.close()

    def test_rights_are_booleans(self) -> None:
        authenticator = self.make()
        principal = authenticator.authenticate(self.known_headers)
        assert principal is not None, "the known headers returned no principal"
        for verb in Verb:
            for model in ("", "some_model"):
                result = authenticator.allows(principal, verb, model)
                assert isinstance(result, bool), f"allows({verb}, '{model}') returned {result!r}"
        if self.denied is not None:
            assert not authenticator.allows(principal, *self.denied), (
                f"{self.denied} must be denied"
            )
