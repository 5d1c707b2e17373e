"""Arrays that all instances of a model share: an addition to Triton's API."""

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
    """Return the arrays of `build` by name.

    The first instance of a version that needs `key` builds them. The others wait and map the same
    memory. If `build` fails or its process dies, the next instance builds. The arrays are
    read-only. `build` may return a dictionary, or yield pairs of name and array: then only one
    array at a time is in memory twice. Raises exceptions of `build`, `TritonModelException` for
    arrays of objects, and `OSError` if there is no memory.
    """
    return host.current().share(key, build)
