"""The errors of loads that do not fit into the memory budget, with the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from tritonpy.repository import InsufficientCapacity
from tritonpy_residency.eviction import ResidentModel, permanent_sizes
from tritonpy_residency.sizes import (
    ALL,
    MemoryLimits,
    Sizes,
    bytes_in,
    device_name,
    format_bytes,
    format_sizes,
    sum_sizes,
)


class DemandExceeded(InsufficientCapacity):
    """A model turned out to be larger than expected; its load was undone and its size is known."""


def capacity_error_text(
    residents: Sequence[ResidentModel], unloading: Sizes, demand: Sizes, limits: MemoryLimits
) -> str:
    """Return why `demand` more bytes do not fit, or why too much is held if it is empty.

    The text has the numbers of each limit that is exceeded.
    """
    held = sum_sizes([unloading, *(model.sizes for model in residents)])
    evictable = sum_sizes(model.sizes for model in residents if model.idle and not model.permanent)
    permanent = permanent_sizes(residents)
    limits_by_device = limits.by_device()
    parts = []
    for device in limits.excess(sum_sizes([demand, held])):
        name = (
            "the memory budget" if device == ALL else f"the memory budget of {device_name(device)}"
        )
        parts.append(
            f"{name} is {format_bytes(limits_by_device[device])}, "
            f"of which {format_bytes(bytes_in(held, device))} are held "
            f"({format_bytes(bytes_in(evictable, device))} by idle models that can be evicted, "
            f"{format_bytes(bytes_in(permanent, device))} by models that cannot)"
        )
    text = "; ".join(parts)
    return f"it needs {format_sizes(demand)}, and {text}" if bytes_in(demand, ALL) else text
