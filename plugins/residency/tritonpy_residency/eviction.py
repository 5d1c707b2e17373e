"""Selection of the models to evict when another model needs memory. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tritonpy_residency.sizes import MemoryLimits, Sizes, sum_sizes


@dataclass(frozen=True, slots=True)
class ResidentModel:
    """A model that holds memory, or an ensemble whose members do.

    `idle` models may be evicted now, `permanent` ones never. The model with the smallest `last_use`
    is evicted first. The `members` of an ensemble stay as long as the ensemble.
    """

    key: str
    sizes: Sizes
    last_use: float = 0.0
    idle: bool = True
    permanent: bool = False
    members: frozenset[str] = frozenset()


def choose_evictions(
    residents: Sequence[ResidentModel], demand: Sizes, limits: MemoryLimits
) -> list[str] | None:
    """Return the models to evict, in order, so that `demand` fits; None if it cannot fit now.

    Selects the least recently used models, and only as many as necessary.
    """
    kept = {resident.key: resident for resident in residents}
    dependents = Counter(member for resident in residents for member in resident.members)
    used = Counter(sum_sizes([demand, *(resident.sizes for resident in residents)]))
    evicted: list[ResidentModel] = []
    while limits.excess(used):
        evictable = [
            model
            for model in kept.values()
            if model.idle and not model.permanent and not dependents[model.key]
        ]
        if not evictable:
            return None
        oldest = min(evictable, key=lambda model: (model.last_use, model.key))
        evicted.append(kept.pop(oldest.key))
        used.subtract(oldest.sizes)
        dependents.subtract(oldest.members)
    return [model.key for model in _without_unneeded(evicted, used, limits)]


def _without_unneeded(
    evicted: Sequence[ResidentModel], used: Counter[str], limits: MemoryLimits
) -> list[ResidentModel]:
    """Return `evicted` without those that can stay after all.

    The most recently used ones are checked first. An ensemble stays only with all its members.
    """
    evicted_keys = {model.key for model in evicted}
    for model in reversed(evicted):
        including = sum_sizes([used, model.sizes])
        if not limits.excess(including) and not model.members & evicted_keys:
            evicted_keys.discard(model.key)
            used = Counter(including)
    return [model for model in evicted if model.key in evicted_keys]


def could_fit(
    residents: Sequence[ResidentModel], demand: Sizes, limits: MemoryLimits,
    waiting_models: Collection[str] = ()
) -> bool:  # fmt: skip
    """Return whether `demand` fits once all evictable models are evicted.

    The models in `waiting_models` wait for this load and cannot be evicted before it.
    """
    return not limits.excess(sum_sizes([demand, permanent_sizes(residents, waiting_models)]))


def permanent_sizes(
    residents: Sequence[ResidentModel], waiting_models: Collection[str] = ()
) -> dict[str, int]:
    """Return the memory of models that are never evicted, and of their members."""
    by_key = {resident.key: resident for resident in residents}
    todo = [
        resident.key
        for resident in residents
        if resident.permanent or resident.key in waiting_models
    ]
    kept_keys: set[str] = set()
    while todo:
        key = todo.pop()
        if key in by_key and key not in kept_keys:
            kept_keys.add(key)
            todo += by_key[key].members
    return sum_sizes(by_key[key].sizes for key in kept_keys)


def may_proceed(ahead: Sequence[tuple[bool, bool]]) -> bool:
    """Return whether a load may reserve memory before others that wait longer.

    Each of those is a pair (blocked, urgent). A load may overtake only blocked loads that are not
    urgent.
    """
    return all(blocked and not urgent for blocked, urgent in ahead)
