"""Arrays that the instances of one version of a model have in common, in this process."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

from tritonpy_worker.shared_arrays import place, view

if TYPE_CHECKING:
    from tritonpy_worker.api.shared_arrays import Array, Named


class LocalShares:
    """One per version; the arrays are in the same memory that a worker's are, which nobody can write to."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._making: dict[str, Lock] = {}
        self._arrays: dict[str, dict[str, Array]] = {}

    def get(self, key: str, build: Callable[[], Named]) -> dict[str, Array]:
        """Return the arrays of `key`; who asks first builds them, others wait. Raises what building them raises: then the next one builds."""
        with self._lock:
            making = self._making.setdefault(key, Lock())
        with making:
            if key not in self._arrays:
                self._arrays[key] = view(*place(build()))
            return dict(self._arrays[key])
