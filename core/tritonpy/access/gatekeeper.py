"""Decides whether a call may go on: who calls, and whether they may."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tritonpy.access.denials import FORBIDDEN, UNAUTHENTICATED, Denials
from tritonpy.api.authenticator import Authenticator, Principal, Verb
from tritonpy.errors import PermissionDenied, Unauthenticated


class Gatekeeper:
    """Asks `authenticators` one after the other; the first that knows the caller decides. Where nothing is configured there is none.

    `open_doors` names what needs no credentials: "health", "metrics". `admit` is called on the event loop.
    """

    def __init__(
        self, authenticators: Mapping[str, Authenticator], open_doors: Collection[str], denials: Denials
    ) -> None:
        self._authenticators = dict(authenticators)
        self._open_doors = frozenset(open_doors)
        self._denials = denials

    def guards(self, door: str) -> bool:
        """Say whether "health" or "metrics" is closed to unknown callers."""
        return door not in self._open_doors

    def identify(self, headers: Mapping[str, str], verb: Verb, model: str = "") -> Principal:
        """Return who calls, whatever they may do; raises Unauthenticated. `verb` and `model` are what a refusal is counted under."""
        return self._known(headers, verb, model)[1]

    def admit(self, headers: Mapping[str, str], verb: Verb, model: str = "") -> Principal:
        """Return who calls; raises Unauthenticated for an unknown caller, PermissionDenied for one without the right.

        Names in `headers` are in lower case; `model` is the name that will be looked up, empty for the server itself.
        """
        authenticator, principal = self._known(headers, verb, model)
        try:
            allowed = authenticator.allows(principal, verb, model)
        except Exception as error:
            self._denials.failed(type(authenticator).__name__, error)
            allowed = False
        if not allowed:
            self._denials.note(FORBIDDEN, verb, model, principal.name)
            what = f"model '{model}'" if model else "this server"
            raise PermissionDenied(f"no right to {verb.value} {what}")
        return principal

    def start(self) -> None:
        """Let the authenticators begin what they do beside requests; may take seconds, call it off the event loop."""
        for authenticator in self._authenticators.values():
            authenticator.start()

    def close(self) -> None:
        """End it; safe without `start`."""
        for authenticator in self._authenticators.values():
            authenticator.close()

    def _known(self, headers: Mapping[str, str], verb: Verb, model: str) -> tuple[Authenticator, Principal]:
        for name, authenticator in self._authenticators.items():
            try:
                principal = authenticator.authenticate(headers)
            except Exception as error:
                self._denials.failed(name, error)
                continue
            if principal is not None:
                return authenticator, principal
        self._denials.note(UNAUTHENTICATED, verb, model)
        raise Unauthenticated("credentials are missing or unknown")
