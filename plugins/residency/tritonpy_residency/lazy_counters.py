"""Counters of lazy models."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

from tritonpy.repository import LoadedModel


@dataclass(slots=True)
class LazyCounters:
    """Counters of lazy models, changed under the guard of `LazyModels` or their own lock.

    `waiting` is the number of requests that wait now. `misses` counts those that waited and were
    then passed to their models. `refused` counts those whose clients were asked to retry.

    Hits are requests that found their model loaded. They are not counted on arrival, but computed:
    all requests in the statistics of the models, minus the misses.
    """

    loads: int = 0
    failures: int = 0
    waiting: int = 0
    misses: int = 0
    refused: int = 0
    evictions: Counter[str] = field(default_factory=Counter)
    _unloaded_requests: int = 0
    _max_hits: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def record_unload(self, model: LoadedModel) -> None:
        """Keep the number of requests of an unloaded version."""
        with self._lock:
            self._unloaded_requests += request_count(model)

    def hits(self, loaded: list[LoadedModel]) -> int:
        """Return how many requests found their model loaded; never decreases.

        `loaded` are the ready versions of lazy models.
        """
        with self._lock:
            seen = self._unloaded_requests + sum(map(request_count, loaded)) - self.misses
            self._max_hits = max(self._max_hits, seen)
            return self._max_hits


def request_count(model: LoadedModel) -> int:
    """Return how many requests a version has completed or has in flight."""
    counted = model.statistics().inference_stats
    return counted.success.count + counted.fail.count + model.in_flight
