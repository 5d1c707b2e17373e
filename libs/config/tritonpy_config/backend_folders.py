"""Folders of backends that are no plugins: Python-based ones, and libraries of the C interface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tritonpy_config.server.server_config import DEFAULT_BACKEND_DIRECTORY

MODEL_FILE = "model.py"
"""The file of a Python-based backend, and the `runtime` of its models."""


def library_name(backend: str) -> str:
    """Return the file name of a backend's library."""
    return f"libtriton_{backend}.so"


def is_library(runtime: str) -> bool:
    """Return whether the `runtime` of a model names a library of the C interface."""
    return runtime.startswith("libtriton_") and runtime.endswith(".so") and "/" not in runtime


class BackendFolders:
    """The folders of backends: those below `root`, and those of plugins.

    A folder contains `model.py` or `libtriton_NAME.so`. Folders below `root` may change while the
    server runs. They have priority.
    """

    def __init__(
        self,
        root: str | Path = DEFAULT_BACKEND_DIRECTORY,
        of_plugins: Mapping[str, Path] | None = None,
    ) -> None:
        self._root = Path(root)
        self._of_plugins = dict(of_plugins or {})

    @classmethod
    def with_plugins(cls, root: str | Path, registered: Mapping[str, Any]) -> BackendFolders:
        """Return the folders below `root` and the `registered` ones, the targets of a hook."""
        return cls(root, {name: Path(entry.target) for name, entry in registered.items()})

    def of_plugins(self) -> Iterable[str]:
        """Return the names of the backends whose folders are in plugins."""
        return self._of_plugins

    def folder(self, name: str) -> Path:
        """Return the folder of the backend `name`, which need not exist."""
        folder = self._root / name
        if (folder / MODEL_FILE).is_file() or self.has_library(name):
            return folder
        return self._of_plugins.get(name, folder)

    def has(self, name: str) -> bool:
        """Return whether the Python-based backend exists. Names that leave the root do not."""
        return _is_plain(name) and (self.folder(name) / MODEL_FILE).is_file()

    def has_library(self, name: str, runtime: str = "") -> bool:
        """Return whether the folder contains the library `runtime`, or the backend's own."""
        path = self._root / name / (runtime or library_name(name))
        return _is_plain(name) and path.is_file()

    def exists(self, name: str) -> bool:
        """Return whether the folder of the backend has a model file or its library."""
        return self.has(name) or self.has_library(name)


def _is_plain(name: str) -> bool:
    return bool(name) and "/" not in name and name not in {".", ".."}
