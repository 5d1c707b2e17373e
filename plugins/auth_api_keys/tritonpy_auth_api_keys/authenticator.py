"""The authenticator `api_keys`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from tritonpy import Options, StartupError
from tritonpy.auth import (
    Authenticator,
    ChangedFile,
    Principal,
    RefreshedValue,
    Rights,
    Verb,
    bearer_token,
)
from tritonpy_auth_api_keys.key import key_id, matches_hash
from tritonpy_auth_api_keys.key_file import KnownKey, parse_key_file

HEADER = "x-api-key"
# Compared with if no key has the id, for constant time.
_UNKNOWN_KEY = KnownKey("sha256:" + "0" * 64, Principal("unknown"))


class ApiKeyOptions(Options, frozen=True):
    """Options under `auth: api_keys:` of server.yaml."""

    file: Annotated[
        Path | None, Meta(description="TOML file of keys; create entries with tritonpy api-key new")
    ] = None
    interval_s: Annotated[
        float, Meta(gt=0, description="Seconds between two checks for changes of the file")
    ] = 1.0

    def __post_init__(self) -> None:
        """Raise `ValueError` without a file."""
        if self.file is None:
            raise ValueError("'file' is missing: the TOML file of keys")


class ApiKeys(Authenticator):
    """Identifies clients by a key in `X-API-Key`, or else in `Authorization: Bearer`.

    The file may change while the server runs. A new content takes effect as a whole. An unreadable
    or missing file changes nothing and is logged.
    """

    Options = ApiKeyOptions

    def __init__(self, options: ApiKeyOptions, clock: Callable[[], float] = time.time) -> None:
        super().__init__(options)
        self._clock = clock
        changed = ChangedFile(Path(str(options.file)), parse_key_file)
        try:
            keys = changed.first()
        except (OSError, ValueError) as error:
            raise StartupError(
                f"auth.api_keys: cannot read the keys in '{options.file}': {error}. "
                "Create it with: tritonpy api-key new --name NAME --infer '*'"
            ) from error
        what = f"the API keys in '{options.file}'"
        self._keys = RefreshedValue(
            keys, changed, what, options.interval_s, logging.getLogger("tritonpy.auth")
        )

    def authenticate(self, headers: Mapping[str, str]) -> Principal | None:
        """Return the principal of the key. None for a missing, unknown or expired key."""
        given = headers.get(HEADER) or bearer_token(headers)
        identity = key_id(given) if given else None
        if given is None or identity is None:
            return None
        known = self._keys.value.get(identity, _UNKNOWN_KEY)
        if not matches_hash(given, known.hash) or known is _UNKNOWN_KEY:
            return None
        return known.principal if self._clock() < known.expires_s else None

    def allows(self, principal: Principal, verb: Verb, model: str) -> bool:
        """Return whether the rights of the key's entry allow the access."""
        return isinstance(principal.rights, Rights) and principal.rights.allow(verb, model)

    def start(self) -> None:
        """Start watching the file."""
        self._keys.start()

    def close(self) -> None:
        """Stop watching the file."""
        self._keys.close()
