"""The errors of a load for which there is no room, with the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from tritonpy.errors import Unavailable
from tritonpy.repository.budget.eviction import Resident, lasting
from tritonpy.repository.budget.sizes import ALL, Limits, Sizes, added, held_in, place_name, spelled, spelled_sizes


class NoRoom(Unavailable):
    """A load would need more memory than there is, or than can be freed now."""


class Outgrown(NoRoom):
    """A model turned out to be larger than was thought: its load was undone, and its size is known now."""


def refusal(residents: Sequence[Resident], leaving: Sizes, need: Sizes, limits: Limits) -> str:
    """Return what stands against `need` more bytes, where it is 0 against what is held: of each bound that is too low how much is held, and by whom."""
    held = added([leaving, *(one.sizes for one in residents)])
    freed = added(one.sizes for one in residents if one.idle and not one.fixed)
    stays = lasting(residents)
    bounds = limits.by_place()
    parts = []
    for place in limits.excess(added([need, held])):
        name = "the memory budget" if place == ALL else f"the memory budget of {place_name(place)}"
        parts.append(
            f"{name} is {spelled(bounds[place])}, of which {spelled(held_in(held, place))} are held "
            f"({spelled(held_in(freed, place))} by idle models that could go, {spelled(held_in(stays, place))} by models that cannot)"
        )
    said = "; ".join(parts)
    return f"it needs {spelled_sizes(need)}, and {said}" if held_in(need, ALL) else said
