"""Shape conversion between models with and without a batch dimension."""

from __future__ import annotations

from collections.abc import Sequence

WILDCARD = -1


def adapt_shape(
    shape: tuple[int, ...], rows: int, dims: Sequence[int], batched: bool
) -> tuple[int, ...]:
    """Return the shape in which a tensor reaches its reader.

    The tensor has a batch of `rows`, 0 without a batch dimension. The reader expects `dims`, with a
    batch dimension in front if it is `batched`. A batch dimension of 1 is added or removed only if
    exactly one side has it. The reader rejects shapes that still do not match.
    """
    if batched == bool(rows):
        return shape
    if batched:
        return (1, *shape) if _fits(shape, dims) else shape
    return shape[1:] if rows == 1 and not _fits(shape, dims) else shape


def _fits(shape: Sequence[int], dims: Sequence[int]) -> bool:
    return len(shape) == len(dims) and all(
        size == dim or WILDCARD in (size, dim) for size, dim in zip(shape, dims, strict=True)
    )
