"""The cache: a store, its lock, and what is counted."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import ClassVar

from tritonpy import Cache, FamilySnapshot, MetricKind, MetricSnapshot, Options, Tensor, now_ns
from tritonpy_cache_local.options import LocalCacheOptions
from tritonpy_cache_local.store import ENTRY_BYTES, TENSOR_BYTES, Store, copy_of, cost_of

log = logging.getLogger("tritonpy.cache")


class LocalCache(Cache):
    """Answers in the server's own memory; the least recently used go first. All models share it.

    A hit is not copied: it is the memory of the entry, which stays until the last answer with it is sent.
    """

    Options: ClassVar[type[Options]] = LocalCacheOptions

    def __init__(self, options: LocalCacheOptions) -> None:
        super().__init__(options)
        self._lock = threading.Lock()
        self._store = Store(options.size)
        self._lookups = self._hits = 0
        self._lookup_ns = self._insertion_ns = 0
        self._told_of_size = False
        log.info("response cache of %d bytes in this process", options.size)
        if options.size < ENTRY_BYTES + TENSOR_BYTES:
            log.warning(
                "the response cache holds no answer: it has %d bytes, and an answer takes %d and its data",
                options.size,
                ENTRY_BYTES + TENSOR_BYTES,
            )

    def lookup(self, key: bytes) -> Sequence[Tensor] | None:
        start = now_ns()
        with self._lock:
            found = self._store.get(key)
            self._lookups += 1
            self._hits += found is not None
            self._lookup_ns += now_ns() - start
        # Their own objects for each answer: what users of a tensor note in it must not stay here.
        return found and [Tensor(each.name, each.datatype, each.shape, each.data) for each in found]

    def insert(self, key: bytes, outputs: Sequence[Tensor]) -> None:
        start, cost = now_ns(), cost_of(outputs)
        if cost > self._store.size:
            self._refuse(cost)
            return
        kept = copy_of(outputs)  # takes time: not under the lock
        with self._lock:
            self._store.put(key, kept, cost)
            self._insertion_ns += now_ns() - start

    def _refuse(self, cost: int) -> None:
        if not self._told_of_size:
            self._told_of_size = True
            log.warning(
                "an answer is not cached, it needs %d bytes and the response cache has %d; further ones are not told of",
                cost,
                self._store.size,
            )

    def metrics(self) -> Sequence[FamilySnapshot]:
        with self._lock:
            store, misses = self._store, self._lookups - self._hits
            return [
                _gauge("util", "Cache utilization [0.0 - 1.0]", store.used / store.size),
                _gauge("num_entries", "Number of responses stored in response cache", len(store)),
                _gauge("num_hits", "Number of cache hits in response cache", self._hits),
                _gauge("num_misses", "Number of cache misses in response cache", misses),
                _gauge("num_lookups", "Number of cache lookups in response cache", self._lookups),
                _gauge("num_evictions", "Number of cache evictions in response cache", store.evictions),
                _gauge(
                    "lookup_duration",
                    "Total cache lookup duration (hit and miss), in microseconds",
                    self._lookup_ns // 1000,
                ),
                _gauge(
                    "insertion_duration", "Total cache insertion duration, in microseconds", self._insertion_ns // 1000
                ),
            ]

    def close(self) -> None:
        with self._lock:
            self._store.clear()


def _gauge(name: str, description: str, value: float) -> FamilySnapshot:
    return FamilySnapshot(f"nv_cache_{name}", description, MetricKind.GAUGE, [MetricSnapshot({}, value)])
