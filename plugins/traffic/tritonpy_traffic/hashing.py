"""Where keys go: weighted rendezvous hashing, alike in every process and after every restart.

The hash of some texts is BLAKE2b with a digest of 8 bytes over their UTF-8, joined by zero bytes; read as a big-endian number h it is the
point (h + 0.5) / 2**64. A key goes to the target whose score, -weight / ln(point of route, target, key), is the highest. So each target gets its
part of the keys, and where a weight changes, keys move only to the target that gained, or away from the one that lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from math import log


def point(*texts: str) -> float:
    """Return the place of some texts, greater than 0 and less than 1."""
    digest = blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    # 53 bits are what a float holds: the highest point is still less than 1
    return ((int.from_bytes(digest, "big") >> 11) + 0.5) / 2**53


def ranked(route: str, key: str, weights: Iterable[tuple[str, float]]) -> list[str]:
    """Return the names of `weights` with a weight, the one where `key` belongs first, then the one where it belongs without that, and so on."""
    scores = [(-weight / log(point(route, name, key)), name) for name, weight in weights if weight > 0]
    return [name for _, name in sorted(scores, reverse=True)]
