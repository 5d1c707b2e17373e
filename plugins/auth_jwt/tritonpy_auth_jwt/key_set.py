"""A JSON Web Key Set, grouped by the algorithms that each key may verify."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from jwt import PyJWK, PyJWTError

_KIND = {"HS": "oct", "RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
_CURVE = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521", "EdDSA": "Ed25519"}
_MIN_SECRET_BYTES = 32  # bytes: the size of SHA-256; shorter secrets can be guessed
_LOG = logging.getLogger("tritonpy.auth")


class KeySet:
    """Keys by algorithm.

    A key is bound to its algorithms when the set is parsed, so a public key is never used as a
    shared secret.
    """

    def __init__(self, keys: Mapping[str, Sequence[tuple[str | None, PyJWK]]]) -> None:
        self._keys = keys

    def __len__(self) -> int:
        return len({identity for keys in self._keys.values() for identity, _ in keys})

    def find(self, algorithm: str, identity: str | None) -> list[PyJWK]:
        """Return the keys that may have signed a token.

        These are the one with the token's key id, or without an id all keys of the algorithm.
        """
        keys = self._keys.get(algorithm, ())
        return [key for own, key in keys if identity is None or own == identity]


def parse_key_set(text: str, algorithms: Sequence[str]) -> KeySet:
    """Return the keys that fit `algorithms`.

    Raises `ValueError` for an invalid key set or if no key fits. Its text contains no key.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    items = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(items, list):
        raise ValueError("it is not a JSON Web Key Set, which is an object with the member 'keys'")  # noqa: TRY004   a file, not an argument
    keys: dict[str, list[tuple[str | None, PyJWK]]] = {algorithm: [] for algorithm in algorithms}
    for number, item in enumerate(items):
        for algorithm in algorithms:
            key = _key(item, algorithm, number)
            if key is not None:
                keys[algorithm].append((_text(item, "kid"), key))
    if not any(keys.values()):
        raise ValueError(f"none of its {len(items)} keys fits {', '.join(algorithms)}")
    return KeySet(keys)


def _key(item: Any, algorithm: str, number: int) -> PyJWK | None:
    if not isinstance(item, dict) or not _fits(item, algorithm):
        return None
    try:
        key = PyJWK(item, algorithm)
    except PyJWTError as error:
        # the error text may contain the key
        _LOG.warning("ignoring key %d of the key set: %s", number, type(error).__name__)
        return None
    if algorithm.startswith("HS") and len(key.key) < _MIN_SECRET_BYTES:
        raise ValueError(f"the secret of key {number} is shorter than {_MIN_SECRET_BYTES} bytes")
    return key


def _fits(item: dict[str, Any], algorithm: str) -> bool:
    return (
        item.get("kty") == _KIND[algorithm[:2]]
        and item.get("alg", algorithm) == algorithm
        and item.get("use", "sig") == "sig"
        and (algorithm not in _CURVE or item.get("crv") == _CURVE[algorithm])
    )


def _text(item: dict[str, Any], name: str) -> str | None:
    value = item.get(name)
    return value if isinstance(value, str) else None
