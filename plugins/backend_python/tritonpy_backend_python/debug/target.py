"""Which model is debugged."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tritonpy import StartupError


@dataclass(frozen=True, slots=True)
class Target:
    """A model of the repository that its folder lies in; `version` is -1 unless a file of it was named."""

    repository: Path
    name: str
    version: int = -1

    @property
    def folder(self) -> Path:
        """The model's folder."""
        return self.repository / self.name


def find_target(path: Path) -> Target:
    """Return the model in the folder `path`, or whose file `path` is. Raises StartupError where there is none."""
    path = Path(os.path.abspath(path))
    if not path.exists():
        raise StartupError(f"there is no model '{path}': give the model's folder, or its model.py")
    if path.is_file():
        version = path.parent
        if not version.name.isdecimal():
            raise StartupError(f"'{path}' does not lie in a version folder of a model, such as add/1/model.py")
        return Target(version.parent.parent, version.parent.name, int(version.name))
    if not any(child.is_dir() and child.name.isdecimal() for child in path.iterdir()):
        raise StartupError(
            f"'{path}' is no folder of a model: it has no version folder, such as {path.name}/1 with model.py in it"
        )
    return Target(path.parent, path.name)
