"""The response cache `local`: a locked store with counters."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import ClassVar

from tritonpy import Cache, Options, Tensor, now_ns
from tritonpy.metrics import FamilySnapshot, MetricKind, MetricSnapshot
from tritonpy_cache_local.options import LocalCacheOptions
from tritonpy_cache_local.store import (
    ENTRY_BYTES,
    TENSOR_BYTES,
    LocalStore,
    copy_outputs,
    entry_bytes,
)

log = logging.getLogger("tritonpy.cache")


class LocalCache(Cache):
    """Responses in the server's memory with least-recently-used eviction, shared by all models.

    A hit is not copied. It refers to the memory of the entry, which lives until the last response
    with it is sent.
    """

    Options: ClassVar[type[Options]] = LocalCacheOptions

    def __init__(self, options: LocalCacheOptions) -> None:
        super().__init__(options)
        self._lock = threading.Lock()
        self._store = LocalStore(options.size)
        self._lookups = self._hits = 0
        self._lookup_ns = self._insertion_ns = 0
        self._has_logged_size = False
        log.info("response cache of %d bytes in this process", options.size)
        if options.size < ENTRY_BYTES + TENSOR_BYTES:
            log.warning(
                (
                    "the response cache of %d bytes is too small: a response takes %d bytes and "
                    "its data"
                ),
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
        # New tensor objects for each response, because users may attach data to a tensor.
        return found and [Tensor(each.name, each.datatype, each.shape, each.data) for each in found]

    def insert(self, key: bytes, outputs: Sequence[Tensor]) -> None:
        start, cost = now_ns(), entry_bytes(outputs)
        if cost > self._store.size:
            self._reject(cost)
            return
        copied = copy_outputs(outputs)  # slow, so outside of the lock
        with self._lock:
            self._store.put(key, copied, cost)
            self._insertion_ns += now_ns() - start

    def _reject(self, cost: int) -> None:
        if not self._has_logged_size:
            self._has_logged_size = True
            log.warning(
                (
                    "response not cached: it needs %d bytes and the response cache has %d; "
                    "not logged again"
                ),
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
                _gauge(
                    "num_evictions", "Number of cache evictions in response cache", store.evictions
                ),
                _gauge(
                    "lookup_duration",
                    "Total cache lookup duration (hit and miss), in microseconds",
                    self._lookup_ns // 1000,
                ),
                _gauge(
                    "insertion_duration",
                    "Total cache insertion duration, in microseconds",
                    self._insertion_ns // 1000,
                ),
            ]

    def close(self) -> None:
        with self._lock:
            self._store.clear()


def _gauge(name: str, description: str, value: float) -> FamilySnapshot:
    return FamilySnapshot(
        f"nv_cache_{name}", description, MetricKind.GAUGE, [MetricSnapshot({}, value)]
    )
