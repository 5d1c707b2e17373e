"""Adds the dependencies of the core to its metadata.

In a checkout the default plugins are on no index, so pip gets the sibling folders. Releases,
tools/install.py and editable environments set TRITONPY_PLAIN_DEPENDENCIES=1 and get names with this
version instead.
"""

from __future__ import annotations

import os
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface


class SiblingDependencies(MetadataHookInterface):
    """Fills the dependencies and extras of the project from the hook's tables in pyproject.toml."""

    def update(self, metadata: dict[str, object]) -> None:
        """Put libraries, siblings and extras into `metadata`."""
        version = str(metadata["version"])
        siblings = [
            self._requirement(name, folder, version)
            for name, folder in self.config["siblings"].items()
        ]
        metadata["dependencies"] = [*self.config["libraries"], *siblings]
        metadata["optional-dependencies"] = {
            extra: [self._optional(text, version) for text in texts]
            for extra, texts in self.config["extras"].items()
        }

    def _optional(self, text: str, version: str) -> str:
        folder = self.config["optional-siblings"].get(text.partition("[")[0])
        return text if folder is None else self._requirement(text, folder, version)

    def _requirement(self, name: str, folder: str, version: str) -> str:
        path = Path(self.root).parent / folder
        if (
            os.environ.get("TRITONPY_PLAIN_DEPENDENCIES") == "1"
            or not (path / "pyproject.toml").is_file()
        ):
            return f"{name}=={version}"
        return f"{name} @ {path.as_uri()}"
