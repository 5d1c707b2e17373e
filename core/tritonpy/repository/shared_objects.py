"""Objects that auto-completion leaves for the load of a version."""

from __future__ import annotations

import logging

from tritonpy.api.backend import Backend

log = logging.getLogger("tritonpy.repository")


class SharedObjects:
    """The `model.shared` of each version between auto-completion and load.

    Objects that no load takes are unloaded.
    """

    def __init__(self) -> None:
        self._shared: dict[int, tuple[type[Backend], object]] = {}

    def store(self, version: int, backend: type[Backend], shared: object) -> None:
        """Store what `backend` left in `model.shared`, unless it is None."""
        if shared is not None:
            self._shared[version] = backend, shared

    def take(self, version: int) -> object:
        """Return and remove the object of a version, or None."""
        return self._shared.pop(version, (None, None))[1]

    def close(self) -> None:
        """Unload all remaining objects."""
        while self._shared:
            _, (backend, shared) = self._shared.popitem()
            unload_shared(backend, shared)


def unload_shared(backend: type[Backend], shared: object) -> None:
    """Unload what `backend` opened; an exception is logged."""
    try:
        backend.unload(shared)
    except Exception:
        log.exception("backend %s failed to free what it opened", backend.__name__)
