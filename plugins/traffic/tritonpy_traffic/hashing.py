"""Weighted rendezvous hashing, equal in every process and after every restart.

Texts are joined by zero bytes and hashed, as UTF-8, by BLAKE2b with a digest of 8 bytes. The first
53 bits of the digest, as a big-endian number n, give the point (n + 0.5) / 2**53. A key goes to the
target with the highest score -weight / ln(point(route, target, key)). So each target gets its share
of the keys. If a weight grows, keys move only to its target; if it shrinks, only away from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from math import log


def point(*texts: str) -> float:
    """Return the point of some texts, greater than 0 and less than 1."""
    digest = blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    # a float holds 53 bits, so the highest point is still less than 1
    return ((int.from_bytes(digest, "big") >> 11) + 0.5) / 2**53


def ranked(route: str, key: str, weights: Iterable[tuple[str, float]]) -> list[str]:
    """Return the names of targets with a positive weight, in order of preference for `key`.

    If the first target is not available, the key goes to the second.
    """
    scores = [
        (-weight / log(point(route, name, key)), name) for name, weight in weights if weight > 0
    ]
    return [name for _, name in sorted(scores, reverse=True)]
