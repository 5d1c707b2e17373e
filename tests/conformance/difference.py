"""Differences between two responses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MISSING = "<missing>"


@dataclass(frozen=True)
class Difference:
    """A difference: its place and the value of each server there."""

    at: str
    triton: Any
    tritonpy: Any

    def __str__(self) -> str:
        return f"{self.at}\n    triton:   {self.triton!r}\n    tritonpy: {self.tritonpy!r}"


def differences(triton: Any, tritonpy: Any, at: str = "") -> Iterator[Difference]:
    """Yield every difference at its innermost place: keys and positions, separated by slashes."""
    if isinstance(triton, dict) and isinstance(tritonpy, dict):
        for key in [*triton, *(key for key in tritonpy if key not in triton)]:
            yield from differences(
                triton.get(key, MISSING), tritonpy.get(key, MISSING), _inside(at, key)
            )
    elif isinstance(triton, list) and isinstance(tritonpy, list) and len(triton) == len(tritonpy):
        for index, (one, other) in enumerate(zip(triton, tritonpy, strict=True)):
            yield from differences(one, other, _inside(at, index))
    elif not _equal(triton, tritonpy):
        yield Difference(at, triton, tritonpy)


def _inside(at: str, key: Any) -> str:
    return f"{at}/{key}" if at else str(key)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return type(one) is type(other) and bool(one == other)
