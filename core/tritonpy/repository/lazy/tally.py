"""What is counted of lazy models."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

from tritonpy.model.loaded import LoadedModel


@dataclass(slots=True)
class LazyTally:
    """Plain numbers, changed under the guard of `ColdModels` but for what has a lock of its own.

    `waiting` requests wait now, `misses` waited and were handed to their models, `refused` were told to come again. Of `hits`, the requests that found
    their model loaded, nothing is counted when they come: they are all that the models' statistics have, without the misses.
    """

    loads: int = 0
    failures: int = 0
    waiting: int = 0
    misses: int = 0
    refused: int = 0
    evictions: Counter[str] = field(default_factory=Counter)
    _past: int = 0
    _most: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def departed(self, model: LoadedModel) -> None:
        """Keep the count of a version that is gone, or answers nothing more."""
        with self._lock:
            self._past += requests_of(model)

    def hits(self, loaded: list[LoadedModel]) -> int:
        """Return how many requests found their model loaded, where `loaded` are the lazy ones that are; it never falls."""
        with self._lock:
            seen = self._past + sum(map(requests_of, loaded)) - self.misses
            self._most = max(self._most, seen)
            return self._most


def requests_of(model: LoadedModel) -> int:
    """Return how many requests a version has answered, and has now."""
    counted = model.statistics().inference_stats
    return counted.success.count + counted.fail.count + model.open
