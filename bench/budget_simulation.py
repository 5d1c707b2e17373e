"""Which requests would find their model loaded: the server's own choice of who goes, in no time at all, and the best choice that there is. Pure."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Sequence

from tritonpy.repository.budget.eviction import Resident, choose
from tritonpy.repository.budget.sizes import Limits

NEVER = 1 << 60


def trace(models: int, count: int, skew: float, seed: int) -> list[int]:
    """Return which model each of `count` requests asks: that of rank r with a weight of 1 / r ** `skew` (0: all alike)."""
    weights = [1 / (rank + 1) ** skew for rank in range(models)]
    return random.Random(seed).choices(range(models), weights, k=count)


def least_recently_used(asked: Sequence[int], room: int) -> float:
    """Return the hit rate of the server's decision where models are never in use when they are to go, and `room` of them fit."""
    last_use: dict[int, int] = {}
    hits = 0
    for moment, model in enumerate(asked):
        if model in last_use:
            hits += 1
        else:
            residents = [Resident(str(key), {"cpu": 1}, used) for key, used in last_use.items()]
            for key in choose(residents, {"cpu": 1}, Limits(room)) or ():
                del last_use[int(key)]
        last_use[model] = moment
    return hits / len(asked)


def clairvoyant(asked: Sequence[int], room: int) -> float:
    """Return the hit rate of who knows the future, and unloads what is asked last of all: nobody can do better."""
    moments: dict[int, list[int]] = {}
    for moment, model in enumerate(asked):
        moments.setdefault(model, []).append(moment)

    def next_use(model: int, now: int) -> int:
        place = bisect_right(moments[model], now)
        return moments[model][place] if place < len(moments[model]) else NEVER

    loaded: set[int] = set()
    hits = 0
    for now, model in enumerate(asked):
        if model in loaded:
            hits += 1
            continue
        if len(loaded) == room:
            loaded.remove(max(loaded, key=lambda each: next_use(each, now)))
        loaded.add(model)
    return hits / len(asked)
