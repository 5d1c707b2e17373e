"""Pure selection of the files to evict from the cache."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from tritonpy_repo_cloud.cache.blobs import StoredFile


def select_evictions(
    stored: Iterable[StoredFile], in_use: Collection[Path], limit: int, needed: int
) -> list[StoredFile] | None:
    """Return the files to evict so that `needed` more bytes fit into `limit`.

    Evicts the least recently used files first, and none in use. Returns None if the bytes cannot
    fit.
    """
    everything = list(stored)
    excess = sum(each.byte_size for each in everything) + needed - limit
    evicted: list[StoredFile] = []
    for each in sorted(everything, key=lambda one: (one.used_ns, one.path)):
        if excess <= 0:
            break
        if each.path not in in_use:
            evicted.append(each)
            excess -= each.byte_size
    return evicted if excess <= 0 else None
