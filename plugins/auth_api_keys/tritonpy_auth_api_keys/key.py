"""What a key looks like: `tpy_ID_SECRET`. The id finds its entry and may be logged, the secret has 256 random bits.

Such a secret cannot be guessed, whatever it is hashed with, so that one round of SHA-256 is as safe as a slow hash; and a slow hash, made for
passwords that people think up, would let anybody who sends wrong keys keep the server busy.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

_KEY = re.compile(r"tpy_([0-9a-f]{12})_[A-Za-z0-9_-]{43}", re.ASCII)


class NewKey(NamedTuple):
    """A key that was just made; `text` is what its owner gets, nobody else keeps it."""

    text: str
    id: str
    hash: str


def new_key() -> NewKey:
    """Return a key that never was before."""
    identity = secrets.token_hex(6)
    text = f"tpy_{identity}_{secrets.token_urlsafe(32)}"
    return NewKey(text, identity, hashed(text))


def key_id(text: str) -> str | None:
    """Return the id in a key, None for what cannot be one."""
    match = _KEY.fullmatch(text)
    return match[1] if match else None


def hashed(text: str) -> str:
    """Return the hash of a key as a file has it, `sha256:` and 64 hexadecimal digits."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def is_same(text: str, expected_hash: str) -> bool:
    """Say whether `text` is the key of a hash, in a time that tells nothing of either."""
    return hmac.compare_digest(hashed(text), expected_hash)
