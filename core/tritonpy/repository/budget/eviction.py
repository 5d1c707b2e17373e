"""Who is unloaded when another model needs room. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tritonpy.repository.budget.sizes import Limits, Sizes, added


@dataclass(frozen=True, slots=True)
class Resident:
    """A model that holds memory, or stands on models that do.

    `idle`: it may go now. `fixed`: it never may. `last_use` orders those that may: the smallest goes first. `members` are what an ensemble stands on:
    they stay as long as it does.
    """

    key: str
    sizes: Sizes
    last_use: float = 0.0
    idle: bool = True
    fixed: bool = False
    members: frozenset[str] = frozenset()


def choose(residents: Sequence[Resident], need: Sizes, limits: Limits) -> list[str] | None:
    """Return which models are to go so that `need` fits, in the order in which they can; None where it does not fit now, whoever goes.

    The least recently used ones go, and none that could stay.
    """
    kept = {resident.key: resident for resident in residents}
    stood_on = Counter(member for resident in residents for member in resident.members)
    used = Counter(added([need, *(resident.sizes for resident in residents)]))
    gone: list[Resident] = []
    while limits.excess(used):
        free = [one for one in kept.values() if one.idle and not one.fixed and not stood_on[one.key]]
        if not free:
            return None
        oldest = min(free, key=lambda one: (one.last_use, one.key))
        gone.append(kept.pop(oldest.key))
        used.subtract(oldest.sizes)
        stood_on.subtract(oldest.members)
    return [one.key for one in _needed(gone, used, limits)]


def _needed(gone: Sequence[Resident], used: Counter[str], limits: Limits) -> list[Resident]:
    """Return `gone` without those that can stay after all, the most recently used first asked; an ensemble stays with all its members."""
    going = {one.key for one in gone}
    for one in reversed(gone):
        with_it = added([used, one.sizes])
        if not limits.excess(with_it) and not one.members & going:
            going.discard(one.key)
            used = Counter(with_it)
    return [one for one in gone if one.key in going]


def could_fit(
    residents: Sequence[Resident], need: Sizes, limits: Limits, held: Collection[str] = ()
) -> bool:  # fmt: skip
    """Say whether `need` fits when all have gone that ever may; models in `held` wait for it, and do not go before."""
    return not limits.excess(added([need, lasting(residents, held)]))


def lasting(residents: Sequence[Resident], held: Collection[str] = ()) -> dict[str, int]:
    """Return what is held by models that never go, and by what those stand on."""
    by_key = {resident.key: resident for resident in residents}
    todo = [resident.key for resident in residents if resident.fixed or resident.key in held]
    stay: set[str] = set()
    while todo:
        key = todo.pop()
        if key in by_key and key not in stay:
            stay.add(key)
            todo += by_key[key].members
    return added(by_key[key].sizes for key in stay)


def may_go(ahead: Sequence[tuple[bool, bool]]) -> bool:
    """Say whether a load may take room though others wait for some longer: each of those is (stuck, has waited too long).

    One for which no room can be made now is overtaken, but not for ever.
    """
    return all(stuck and not too_long for stuck, too_long in ahead)
