"""Arrays that the instances of a model version share, in this process."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

from tritonpy_worker.shared_arrays import place, view

if TYPE_CHECKING:
    from tritonpy_worker.api.shared_arrays import Array, Named


class LocalSharedArrays:
    """The shared arrays of a version. As in workers, their memory is write-protected."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._making: dict[str, Lock] = {}
        self._arrays: dict[str, dict[str, Array]] = {}

    def get(self, key: str, build: Callable[[], Named]) -> dict[str, Array]:
        """Return the arrays of `key`. The first caller builds them; others wait.

        Raises exceptions of `build`. Then the next caller builds.
        """
        with self._lock:
            making = self._making.setdefault(key, Lock())
        with making:
            if key not in self._arrays:
                self._arrays[key] = view(*place(build()))
            return dict(self._arrays[key])
