"""The authenticator `jwt`."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

from tritonpy import StartupError
from tritonpy.auth import (
    Authenticator,
    ChangedFile,
    Principal,
    RefreshedValue,
    Rights,
    Verb,
    bearer_token,
)
from tritonpy_auth_jwt.claimed_rights import claimed_rights
from tritonpy_auth_jwt.download import download
from tritonpy_auth_jwt.key_set import KeySet, parse_key_set
from tritonpy_auth_jwt.options import JwtOptions
from tritonpy_auth_jwt.verifier import UnknownKey, Verifier

_LOG = logging.getLogger("tritonpy.auth")
_FILE_INTERVAL_S = 1.0
_MAX_REMEMBERED = 4096


class JwtAuthenticator(Authenticator):
    """Identifies clients by a signed token in `Authorization: Bearer`.

    Keys come from a file or a URL and are refreshed in a thread. A token with an unknown key
    requests a refresh and is rejected until that has finished. Valid tokens are cached until they
    expire or the keys change, because verification can cost more than a model.
    """

    Options = JwtOptions

    def __init__(self, options: JwtOptions, clock: Callable[[], float] = time.time) -> None:
        super().__init__(options)
        self._clock = clock
        self._verifier: RefreshedValue[Verifier] = (
            _from_file(options) if options.jwks_file else _from_url(options)
        )
        self._verified_principals: OrderedDict[bytes, tuple[float, Principal]] = OrderedDict()
        self._verified_with: Verifier | None = None

    def authenticate(self, headers: Mapping[str, str]) -> Principal | None:
        """Return the principal of a valid token, otherwise None."""
        token = bearer_token(headers)
        if token is None:
            return None
        verifier = self._verifier.value
        if verifier is not self._verified_with:
            self._verified_principals.clear()
            self._verified_with = verifier
        digest = sha256(token.encode("utf-8", "surrogateescape")).digest()
        known = self._verified_principals.get(digest)
        if known is not None and known[0] > self._clock():
            return known[1]
        return self._verified(verifier, token, digest)

    def _verified(self, verifier: Verifier, token: str, digest: bytes) -> Principal | None:
        try:
            claims = verifier.claims(token)
        except UnknownKey:
            self._verifier.request_refresh()
            return None
        name = str(claims[self.options.name_claim]) if claims is not None else ""
        if claims is None or not name:
            return None
        principal = Principal(name, claimed_rights(claims.get(self.options.rights_claim)))
        self._verified_principals[digest] = float(claims["exp"]) + self.options.leeway_s, principal
        if len(self._verified_principals) > _MAX_REMEMBERED:
            self._verified_principals.popitem(last=False)
        return principal

    def allows(self, principal: Principal, verb: Verb, model: str) -> bool:
        """Return whether the rights in the token allow the access."""
        return isinstance(principal.rights, Rights) and principal.rights.allow(verb, model)

    def start(self) -> None:
        """Fetch the keys if they come from a URL, and start refreshing them."""
        if self.options.jwks_url:
            self._verifier.refresh()
        self._verifier.start()

    def close(self) -> None:
        """Stop refreshing the keys."""
        self._verifier.close()


def _from_file(options: JwtOptions) -> RefreshedValue[Verifier]:
    changed = ChangedFile(
        Path(str(options.jwks_file)),
        lambda text: Verifier(parse_key_set(text, options.algorithms), options),
    )
    try:
        verifier = changed.first()
    except (OSError, ValueError) as error:
        raise StartupError(
            f"auth.jwt: cannot read the key set in '{options.jwks_file}': {error}"
        ) from error
    return RefreshedValue(
        verifier, changed, f"the key set in '{options.jwks_file}'", _FILE_INTERVAL_S, _LOG
    )


def _from_url(options: JwtOptions) -> RefreshedValue[Verifier]:
    empty = Verifier(KeySet({}), options)  # no key is known until the first fetch
    what = f"the key set at {options.jwks_url}"
    return RefreshedValue(
        empty, _KeySetFetcher(options), what, options.refresh_s, _LOG, options.pause_s
    )


class _KeySetFetcher:
    """Fetches the key set. Returns None if it has not changed."""

    def __init__(self, options: JwtOptions) -> None:
        self._options = options
        self._last = ""

    def __call__(self) -> Verifier | None:
        text = download(str(self._options.jwks_url), self._options.timeout_s)
        if text == self._last:
            return None
        verifier = Verifier(parse_key_set(text, self._options.algorithms), self._options)
        self._last = text
        return verifier
