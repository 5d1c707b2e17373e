"""Weighted rendezvous hashing, equal in every process and after every restart.

The hash of some texts is BLAKE2b with a digest of 8 bytes over their UTF-8, joined by zero bytes.
Its first 53 bits, as a big-endian number n, give the point (n + 0.5) / 2**53. A key goes to the
target with the highest score -weight / ln(point of route, target and key). So each target gets its
share of the keys. A changed weight moves keys only to the target that gained, or away from the one
that lost.
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
    """Return the names of targets with a weight, in order of preference for `key`.

    Without its first target, a key goes to its second.
    """
    scores = [(-weight / log(point(route, name, key)), name) for name, weight in weights if weight > 0]
    return [name for _, name in sorted(scores, reverse=True)]
