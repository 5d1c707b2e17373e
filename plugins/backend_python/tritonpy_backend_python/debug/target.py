"""The model to debug."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tritonpy import StartupError


@dataclass(frozen=True, slots=True)
class DebugTarget:
    """A model in its repository. `version` is -1 unless the path named a file of a version."""

    repository: Path
    name: str
    version: int = -1

    @property
    def folder(self) -> Path:
        """The model's folder."""
        return self.repository / self.name


def find_target(path: Path) -> DebugTarget:
    """Return the model whose folder, or file, is `path`. Raises `StartupError` if there is none."""
    path = Path(os.path.abspath(path))
    if not path.exists():
        raise StartupError(f"'{path}' does not exist: give the model's folder, or its model.py")
    if path.is_file():
        version = path.parent
        if not version.name.isdecimal():
            raise StartupError(
                f"'{path}' is not in a version folder of a model, such as add/1/model.py"
            )
        return DebugTarget(version.parent.parent, version.parent.name, int(version.name))
    if not any(child.is_dir() and child.name.isdecimal() for child in path.iterdir()):
        raise StartupError(
            f"'{path}' is not a model's folder: it has no version folder, "
            f"such as {path.name}/1 with model.py in it"
        )
    return DebugTarget(path.parent, path.name)
