"""The authenticator `jwt`."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

from tritonpy import Authenticator, ChangedFile, Principal, Refreshed, Rights, StartupError, Verb, bearer_token
from tritonpy_auth_jwt.claimed_rights import claimed_rights
from tritonpy_auth_jwt.fetching import fetch
from tritonpy_auth_jwt.key_set import KeySet, parse_key_set
from tritonpy_auth_jwt.options import JwtOptions
from tritonpy_auth_jwt.verifier import UnknownKey, Verifier

_LOG = logging.getLogger("tritonpy.access")
_FILE_INTERVAL_S = 1.0
_MOST_REMEMBERED = 4096


class JwtAuthenticator(Authenticator):
    """Knows callers by a signed token in `Authorization: Bearer`.

    Keys come from a file or a URL and are read again in a thread. A token whose key is unknown asks for a reading and is refused until it has come.
    A token that was good is remembered until it expires or the keys change, because verifying costs more than many a model.
    """

    Options = JwtOptions

    def __init__(self, options: JwtOptions, clock: Callable[[], float] = time.time) -> None:
        super().__init__(options)
        self._clock = clock
        self._verifier: Refreshed[Verifier] = _from_file(options) if options.jwks_file else _from_url(options)
        self._good: OrderedDict[bytes, tuple[float, Principal]] = OrderedDict()
        self._good_for: Verifier | None = None

    def authenticate(self, headers: Mapping[str, str]) -> Principal | None:
        """Return whom a good token names, None for no token and one that is not."""
        token = bearer_token(headers)
        if token is None:
            return None
        verifier = self._verifier.value
        if verifier is not self._good_for:
            self._good.clear()
            self._good_for = verifier
        digest = sha256(token.encode("utf-8", "surrogateescape")).digest()
        known = self._good.get(digest)
        if known is not None and known[0] > self._clock():
            return known[1]
        return self._verified(verifier, token, digest)

    def _verified(self, verifier: Verifier, token: str, digest: bytes) -> Principal | None:
        try:
            claims = verifier.claims(token)
        except UnknownKey:
            self._verifier.ask()
            return None
        name = str(claims[self.options.name_claim]) if claims is not None else ""
        if claims is None or not name:
            return None
        principal = Principal(name, claimed_rights(claims.get(self.options.rights_claim)))
        self._good[digest] = float(claims["exp"]) + self.options.leeway_s, principal
        if len(self._good) > _MOST_REMEMBERED:
            self._good.popitem(last=False)
        return principal

    def allows(self, principal: Principal, verb: Verb, model: str) -> bool:
        """Say what the token's claim says."""
        return isinstance(principal.rights, Rights) and principal.rights.allow(verb, model)

    def start(self) -> None:
        """Fetch the keys, where they come from a URL, and begin to follow them."""
        if self.options.jwks_url:
            self._verifier.look()
        self._verifier.start()

    def close(self) -> None:
        """End it."""
        self._verifier.close()


def _from_file(options: JwtOptions) -> Refreshed[Verifier]:
    changed = ChangedFile(
        Path(str(options.jwks_file)), lambda text: Verifier(parse_key_set(text, options.algorithms), options)
    )
    try:
        verifier = changed.first()
    except (OSError, ValueError) as error:
        raise StartupError(f"auth.jwt: cannot read the key set in '{options.jwks_file}': {error}") from error
    return Refreshed(verifier, changed, f"the key set in '{options.jwks_file}'", _FILE_INTERVAL_S, _LOG)


def _from_url(options: JwtOptions) -> Refreshed[Verifier]:
    nobody = Verifier(KeySet({}), options)  # until the first fetch nobody is known
    what = f"the key set at {options.jwks_url}"
    return Refreshed(nobody, _Fetched(options), what, options.refresh_s, _LOG, options.pause_s)


class _Fetched:
    """Fetches the set; one that did not change counts as none."""

    def __init__(self, options: JwtOptions) -> None:
        self._options = options
        self._last = ""

    def __call__(self) -> Verifier | None:
        text = fetch(str(self._options.jwks_url), self._options.timeout_s)
        if text == self._last:
            return None
        verifier = Verifier(parse_key_set(text, self._options.algorithms), self._options)
        self._last = text
        return verifier
