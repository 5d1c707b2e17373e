"""Token verification: signature, times, issuer and audience."""

from __future__ import annotations

import re
from typing import Any

import jwt

from tritonpy_auth_jwt.key_set import KeySet
from tritonpy_auth_jwt.options import JwtOptions

_TOKEN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)


class UnknownKey(Exception):
    """No key of the set can have signed the token. The set may be older than the token."""


class Verifier:
    """Verifies tokens with one key set.

    It accepts only the configured algorithms, and each key only for its own algorithms.
    """

    def __init__(self, keys: KeySet, options: JwtOptions) -> None:
        self._keys = keys
        self._algorithms = frozenset(options.algorithms)
        self._leeway_s = options.leeway_s
        self._issuer = options.issuer or None
        self._audience = options.audience or None
        required = [
            "exp",
            options.name_claim,
            *(["iss"] if self._issuer else ()),
            *(["aud"] if self._audience else ()),
        ]
        self._options: Any = {"require": required, "verify_sub": options.name_claim == "sub"}

    def claims(self, token: str) -> dict[str, Any] | None:
        """Return the claims of a valid token, otherwise None. Raises `UnknownKey`."""
        if not _TOKEN.fullmatch(token):
            return None
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            return None
        algorithm, identity = header.get("alg"), header.get("kid")
        if (
            not isinstance(algorithm, str)
            or algorithm not in self._algorithms
            or "crit" in header
            or "b64" in header
        ):
            return None
        keys = self._keys.find(algorithm, identity)
        if not keys:
            raise UnknownKey
        return next(
            (
                claims
                for key in keys
                if (claims := self._verified(token, key, algorithm)) is not None
            ),
            None,
        )

    def _verified(self, token: str, key: jwt.PyJWK, algorithm: str) -> dict[str, Any] | None:
        try:
            return jwt.decode(
                token,
                key,
                [algorithm],
                self._options,
                audience=self._audience,
                issuer=self._issuer,
                leeway=self._leeway_s,
            )
        except jwt.PyJWTError:
            return None
