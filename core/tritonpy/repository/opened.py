"""What auto-completion opened of a model's versions."""

from __future__ import annotations

import logging

from tritonpy.api.backend import Backend

log = logging.getLogger("tritonpy.repository")


class Opened:
    """Keeps it until the load of that version goes on from it; what no load took is freed."""

    def __init__(self) -> None:
        self._shared: dict[int, tuple[type[Backend], object]] = {}

    def keep(self, version: int, backend: type[Backend], shared: object) -> None:
        """Take over what `backend` left in `model.shared`; None is nothing."""
        if shared is not None:
            self._shared[version] = backend, shared

    def take(self, version: int) -> object:
        """Return it, once; None where nothing was kept."""
        return self._shared.pop(version, (None, None))[1]

    def close(self) -> None:
        """Free what is left."""
        while self._shared:
            _, (backend, shared) = self._shared.popitem()
            free(backend, shared)


def free(backend: type[Backend], shared: object) -> None:
    """Let `backend` free what it opened; an exception is logged, whatever led here goes on."""
    try:
        backend.unload(shared)
    except Exception:
        log.exception("backend %s failed to free what it opened", backend.__name__)
