"""Format of keys: `tpy_ID_SECRET`.

The id finds the entry and may be logged. The secret has 256 random bits.

Such a secret cannot be guessed, so one round of SHA-256 is as safe as a slow hash. A slow hash,
meant for passwords, would let anyone keep the server busy with wrong keys.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

_KEY = re.compile(r"tpy_([0-9a-f]{12})_[A-Za-z0-9_-]{43}", re.ASCII)


class NewKey(NamedTuple):
    """A new key. `text` goes to its owner and is stored nowhere else."""

    text: str
    id: str
    hash: str


def new_key() -> NewKey:
    """Return a new random key."""
    identity = secrets.token_hex(6)
    text = f"tpy_{identity}_{secrets.token_urlsafe(32)}"
    return NewKey(text, identity, hash_key(text))


def key_id(text: str) -> str | None:
    """Return the id in a key, None if the text is not a key."""
    match = _KEY.fullmatch(text)
    return match[1] if match else None


def hash_key(text: str) -> str:
    """Return the hash of a key as in the key file: `sha256:` and 64 hexadecimal digits."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def matches_hash(text: str, expected_hash: str) -> bool:
    """Return whether `text` is the key with this hash, in constant time."""
    return hmac.compare_digest(hash_key(text), expected_hash)
