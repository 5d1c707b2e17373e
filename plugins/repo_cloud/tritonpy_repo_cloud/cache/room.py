"""What goes when there is no room. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from tritonpy_repo_cloud.cache.blobs import Stored


def to_evict(stored: Iterable[Stored], in_use: Collection[Path], limit: int, needed: int) -> list[Stored] | None:
    """Return what must go so that `needed` bytes more fit into `limit`: what was not used for longest first, and nothing in use.

    None where they do not fit even then.
    """
    everything = list(stored)
    excess = sum(each.byte_size for each in everything) + needed - limit
    going: list[Stored] = []
    for each in sorted(everything, key=lambda one: (one.used_ns, one.path)):
        if excess <= 0:
            break
        if each.path not in in_use:
            going.append(each)
            excess -= each.byte_size
    return going if excess <= 0 else None
