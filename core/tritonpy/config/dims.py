"""Dimensions in a configuration: -1 is a variable dimension."""

from __future__ import annotations

from collections.abc import Iterable

WILDCARD = -1
MAX_SIZE = (1 << 63) - 1


def dims_text(dims: Iterable[int]) -> str:
    """Return `[1,-1,3]`, the format of Triton's error texts."""
    return f"[{','.join(map(str, dims))}]"


def element_count(dims: Iterable[int]) -> int:
    """Return the number of elements: -1 with a variable dimension, 0 without any dimension."""
    sizes = list(dims)
    if WILDCARD in sizes or not sizes:
        return WILDCARD if sizes else 0
    count = 1
    for size in sizes:
        count *= size
    return count


def trunk_counts(dims: Iterable[int]) -> list[int]:
    """Return the element counts of the runs between variable dimensions: [2,4,-1,6] gives [8,6]."""
    counts = [1]
    for size in dims:
        if size == WILDCARD:
            counts.append(1)
        else:
            counts[-1] *= size
    return counts
