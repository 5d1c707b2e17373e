"""Arrays that are in memory once, however many instances a model has: an addition to Triton's API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    import numpy as np

    Array = np.ndarray[Any, Any]
    Named = Mapping[str, Array] | Iterable[tuple[str, Array]]


def shared_arrays(key: str, build: Callable[[], Named]) -> dict[str, Array]:
    """Return the arrays that `build` returns, by name; of all instances of a version the first that asks for `key` builds them.

    The others wait for it and get the same memory; where it fails or dies, the next one builds. The arrays are read-only. `build` may
    return a dictionary, or yield pairs of name and array: then only one of them at a time is in memory twice.
    Raises what `build` raises, TritonModelException for arrays of objects, OSError where there is no memory.
    """
    return host.current().share(key, build)
