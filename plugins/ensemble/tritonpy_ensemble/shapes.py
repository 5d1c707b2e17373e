"""Tensors on their way between models that have a batch dimension and models that have none. Pure."""

from __future__ import annotations

from collections.abc import Sequence

WILDCARD = -1


def handed_on(shape: tuple[int, ...], rows: int, dims: Sequence[int], batched: bool) -> tuple[int, ...]:
    """Return the shape in which a tensor reaches its reader.

    It came with a batch of `rows`, 0 for none. The reader expects `dims`, with a batch dimension in front where it is `batched`. Only where one of the two
    has such a dimension and the other has not, one of size 1 is added or dropped; what does not fit then is left for the reader to refuse.
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
