"""The contract of authenticators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tritonpy.api.authenticator import Authenticator, Principal, Verb
from tritonpy.testing.contracts.plugin import PluginContract


class AuthenticatorContract(PluginContract):
    """What `Authenticator` promises. Give `plugin_class`, `known_headers` and `unknown_headers`.

    `denied` is a verb and a model that the known caller has no right to (None: it may do everything).
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

    def test_a_known_caller_is_named(self) -> None:
        principal = self.make().authenticate(self.known_headers)
        assert isinstance(principal, Principal), f"the known headers gave {principal!r}"
        assert principal.name, "the principal has no name"

    def test_an_unknown_caller_is_nobody(self) -> None:
        assert self.make().authenticate(self.unknown_headers) is None

    def test_headers_that_say_nothing_are_no_error(self) -> None:
        for headers in ({}, {"authorization": ""}, {"authorization": "\xff nonsense"}):
            principal = self.make().authenticate(headers)
            assert principal is None or isinstance(principal, Principal)

    def test_it_answers_between_start_and_close_and_close_needs_no_start(self) -> None:
        self.make().close()
        authenticator = self.make()
        authenticator.start()
        try:
            assert isinstance(authenticator.authenticate(self.known_headers), Principal)
        finally:
            authenticator.close()
            authenticator.close()

    def test_rights_are_yes_or_no(self) -> None:
        authenticator = self.make()
        principal = authenticator.authenticate(self.known_headers)
        assert principal is not None, "the known headers gave nobody"
        for verb in Verb:
            for model in ("", "some_model"):
                answer = authenticator.allows(principal, verb, model)
                assert isinstance(answer, bool), f"allows({verb}, '{model}') gave {answer!r}"
        if self.denied is not None:
            assert not authenticator.allows(principal, *self.denied), f"{self.denied} must be denied"
