"""The registered backends: their classes, options and what files they serve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tritonpy.api.backend import Backend
from tritonpy.api.options import Options
from tritonpy.config.known_backends import BackendFiles
from tritonpy.config.server import decode_options
from tritonpy.plugins.manager import PluginManager

DEFAULT_MAX_BATCH_SIZE = 4  # Triton's, for models that can batch and do not say how far


class Backends:
    """Finds a backend by name and decodes its options from server.yaml, once."""

    def __init__(
        self, plugins: PluginManager, options: Mapping[str, Mapping[str, Any]], defaults: Mapping[str, Any]
    ) -> None:
        self._plugins = plugins
        self._options = options
        self._defaults = {_key(key): value for key, value in defaults.items()}
        self._decoded: dict[str, Options] = {}

    def get(self, name: str) -> type[Backend]:
        """Return the class. Raises PluginError naming the package to install."""
        backend: type[Backend] = self._plugins.get("tritonpy_backends", name, "backend").load()
        return backend

    def options(self, name: str) -> Options:
        """Return the options of the backend `name`. Raises InvalidServerConfig."""
        if name not in self._decoded:
            self._decoded[name] = self._decode(name)
        return self._decoded[name]

    def _decode(self, name: str) -> Options:
        kind = self.get(name).Options
        known = {_key(field.name) for field in msgspec.structs.fields(kind)}
        shared = {key: value for key, value in self._defaults.items() if key in known}
        own = {_key(key): value for key, value in self._options.get(name, {}).items()}
        return decode_options(kind, shared | own, f"backends.{name}")

    def default_max_batch_size(self, name: str) -> int:
        """Return the batch size that auto-completion gives to models which can batch."""
        chosen = getattr(self.options(name), "default_max_batch_size", None)
        return int(
            chosen if chosen is not None else self._defaults.get("default_max_batch_size", DEFAULT_MAX_BATCH_SIZE)
        )

    def files(self, backend: str = "") -> list[BackendFiles]:
        """Return what the installed backends serve, or only `backend`; imports the modules of those it returns."""
        table = self._plugins.table("tritonpy_backends")
        names = [name for name in table if backend in ("", name)]
        return [
            BackendFiles(name, table[name].load().platforms, table[name].load().default_filenames) for name in names
        ]

    def check_options(self) -> None:
        """Decode the options of every configured backend that is installed, so that a typo is found at start."""
        for name in self._options:
            if name in self._plugins.table("tritonpy_backends"):
                self.options(name)


def _key(key: str) -> str:
    return key.replace("-", "_")
