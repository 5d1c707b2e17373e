"""Python-based backends: folders whose `model.py` serves every model that names the folder as its backend."""

from __future__ import annotations

from pathlib import Path

from tritonpy.config.server.server_config import DEFAULT_BACKEND_DIRECTORY

MODEL_FILE = "model.py"
"""What a Python-based backend consists of, and what the configuration's `runtime` says of its models."""
PYTHON = "python"


class BackendFolders:
    """The folders below `root`, one for each Python-based backend; they may come and go while the server runs."""

    def __init__(self, root: str | Path = DEFAULT_BACKEND_DIRECTORY) -> None:
        self._root = Path(root)

    def folder(self, name: str) -> Path:
        """Return where the backend `name` is, or would be."""
        return self._root / name

    def has(self, name: str) -> bool:
        """Say whether there is such a backend; a name that leads out of the root is none."""
        is_plain = bool(name) and "/" not in name and name not in {".", ".."}
        return is_plain and (self.folder(name) / MODEL_FILE).is_file()
