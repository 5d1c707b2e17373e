"""Simulated hit rates of a memory budget: the server's eviction policy and the optimal one."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Sequence

from tritonpy_residency.eviction import ResidentModel, choose_evictions
from tritonpy_residency.sizes import MemoryLimits

NEVER = 1 << 60


def trace(models: int, count: int, skew: float, seed: int) -> list[int]:
    """Return the models of `count` requests; rank r has the weight 1 / r ** `skew` (0: uniform)."""
    weights = [1 / (rank + 1) ** skew for rank in range(models)]
    return random.Random(seed).choices(range(models), weights, k=count)


def least_recently_used(requested: Sequence[int], capacity: int) -> float:
    """Return the hit rate of the server's policy if `capacity` models fit, all evictable."""
    last_use: dict[int, int] = {}
    hits = 0
    for time, model in enumerate(requested):
        if model in last_use:
            hits += 1
        else:
            residents = [
                ResidentModel(str(key), {"cpu": 1}, used) for key, used in last_use.items()
            ]
            for key in choose_evictions(residents, {"cpu": 1}, MemoryLimits(capacity)) or ():
                del last_use[int(key)]
        last_use[model] = time
    return hits / len(requested)


def optimal(requested: Sequence[int], capacity: int) -> float:
    """Return the optimal hit rate: the policy evicts the model with the latest next use."""
    use_times: dict[int, list[int]] = {}
    for time, model in enumerate(requested):
        use_times.setdefault(model, []).append(time)

    def next_use(model: int, now: int) -> int:
        index = bisect_right(use_times[model], now)
        return use_times[model][index] if index < len(use_times[model]) else NEVER

    loaded: set[int] = set()
    hits = 0
    for now, model in enumerate(requested):
        if model in loaded:
            hits += 1
            continue
        if len(loaded) == capacity:
            loaded.remove(max(loaded, key=lambda each: next_use(each, now)))
        loaded.add(model)
    return hits / len(requested)
