"""Folders of Python-based backends.

Their `model.py` executes all models that name the folder as backend.
"""

from __future__ import annotations

from pathlib import Path

from tritonpy.config.server.server_config import DEFAULT_BACKEND_DIRECTORY

MODEL_FILE = "model.py"
"""The file of a Python-based backend, and the `runtime` of its models."""
PYTHON = "python"


class BackendFolders:
    """The folders below `root`, one per Python-based backend.

    They may change while the server runs.
    """

    def __init__(self, root: str | Path = DEFAULT_BACKEND_DIRECTORY) -> None:
        self._root = Path(root)

    def folder(self, name: str) -> Path:
        """Return the folder of the backend `name`, which need not exist."""
        return self._root / name

    def has(self, name: str) -> bool:
        """Return whether the backend exists. Names that leave the root do not."""
        is_plain = bool(name) and "/" not in name and name not in {".", ".."}
        return is_plain and (self.folder(name) / MODEL_FILE).is_file()
