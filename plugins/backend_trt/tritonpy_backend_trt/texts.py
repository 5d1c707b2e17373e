"""How shapes are written in error texts."""

from __future__ import annotations

from collections.abc import Iterable


def shape_text(shape: Iterable[int]) -> str:
    """Return `shape` as Triton writes it: `[-1,3]`."""
    return f"[{','.join(map(str, shape))}]"
