"""Authentication and authorization of calls."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import translate

from tritonpy.api.authenticator import Authenticator, Principal, Verb
from tritonpy.auth.denials import FORBIDDEN, UNAUTHENTICATED, Denials
from tritonpy_types.errors import PermissionDenied, Unauthenticated

MAX_CREDENTIAL_LENGTH = 8192
"""The longest accepted credential, in characters. Longer ones match no principal."""


def joined_headers(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers by name in lower case.

    Values of a repeated header are joined by commas, as in HTTP.

    A credential that is sent twice is invalid, since no valid one contains a comma.
    """
    headers: dict[str, str] = {}
    for name, value in pairs:
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers


def bearer_token(headers: Mapping[str, str]) -> str | None:
    """Return the token of `Authorization: Bearer TOKEN`, or None if it is missing or too long."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    token = token.strip()
    return (
        token
        if token and len(token) <= MAX_CREDENTIAL_LENGTH and scheme.lower() == "bearer"
        else None
    )


class Rights:
    """The rights of one principal. In a pattern, `*` and `?` are wildcards; case matters.

    The server itself (its metadata, log settings, the index) has an empty model name, which only a
    pattern such as `*` matches. No verb includes another one.
    """

    def __init__(self, patterns: Mapping[Verb, Sequence[str]]) -> None:
        self._allowed = {
            verb: re.compile("|".join(map(translate, globs))).match
            for verb, globs in patterns.items()
            if globs
        }

    def allow(self, verb: Verb, model: str) -> bool:
        """Return whether `verb` is allowed for `model` (empty: the server).

        A name with a slash is never allowed, since it would be a path. A namespace may have slashes
        (`models/a::digits`) and is part of the match.
        """
        matches = self._allowed.get(verb)
        return (
            matches is not None
            and "/" not in model.rpartition("::")[2]
            and matches(model) is not None
        )


class Authorizer:
    """Decides whether a call may proceed. The first authenticator that knows the principal decides.

    It exists only if authenticators are configured. `public_endpoints` are endpoints without
    authentication: "health", "metrics". `admit` runs on the event loop.
    """

    def __init__(
        self,
        authenticators: Mapping[str, Authenticator],
        public_endpoints: Collection[str],
        denials: Denials,
    ) -> None:
        self._authenticators = dict(authenticators)
        self._public_endpoints = frozenset(public_endpoints)
        self._denials = denials

    def guards(self, endpoint: str) -> bool:
        """Return whether the endpoint "health" or "metrics" requires authentication."""
        return endpoint not in self._public_endpoints

    def identify(self, headers: Mapping[str, str], verb: Verb, model: str = "") -> Principal:
        """Return the principal, whatever its rights. Raises Unauthenticated.

        A refusal is counted under `verb` and `model`.
        """
        return self._known(headers, verb, model)[1]

    def admit(self, headers: Mapping[str, str], verb: Verb, model: str = "") -> Principal:
        """Return the principal of a call.

        Names in `headers` are in lower case. `model` is the name of the requested model, empty for
        the server itself. Raises Unauthenticated for an unknown principal, PermissionDenied for one
        without the right.
        """
        authenticator, principal = self._known(headers, verb, model)
        try:
            allowed = authenticator.allows(principal, verb, model)
        except Exception as error:
            self._denials.failed(type(authenticator).__name__, error)
            allowed = False
        if not allowed:
            self._denials.note(FORBIDDEN, verb, model, principal.name)
            target = f"model '{model}'" if model else "this server"
            raise PermissionDenied(f"no right to {verb.value} {target}")
        return principal

    def start(self) -> None:
        """Start background tasks of the authenticators.

        It may take seconds: call it off the event loop.
        """
        for authenticator in self._authenticators.values():
            authenticator.start()

    def close(self) -> None:
        """Stop the authenticators. Safe without `start`."""
        for authenticator in self._authenticators.values():
            authenticator.close()

    def _known(
        self, headers: Mapping[str, str], verb: Verb, model: str
    ) -> tuple[Authenticator, Principal]:
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
