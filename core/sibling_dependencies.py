"""Adds the dependencies of the core to its metadata.

In a checkout the default plugins are on no index, so pip gets the sibling folders. Releases, tools/install.py and
editable environments set TRITONPY_PLAIN_DEPENDENCIES=1 and get names with this version instead.
"""

from __future__ import annotations

import os
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface


class SiblingDependencies(MetadataHookInterface):
    """Fills `project.dependencies` from the hook's table in pyproject.toml."""

    def update(self, metadata: dict[str, object]) -> None:
        """Put libraries and siblings into `metadata`."""
        siblings = [
            self._requirement(name, folder, str(metadata["version"]))
            for name, folder in self.config["siblings"].items()
        ]
        metadata["dependencies"] = [*self.config["libraries"], *siblings]

    def _requirement(self, name: str, folder: str, version: str) -> str:
        path = Path(self.root).parent / folder
        if os.environ.get("TRITONPY_PLAIN_DEPENDENCIES") == "1" or not (path / "pyproject.toml").is_file():
            return f"{name}=={version}"
        return f"{name} @ {path.as_uri()}"
