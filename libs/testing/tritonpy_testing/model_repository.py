"""A model repository that a test builds."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path


class ModelRepository:
    """A folder in the layout of a model repository; `path` is its root."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    def add(
        self,
        name: str,
        config: str | None = None,
        versions: Mapping[int, Mapping[str, bytes | str]] | None = None,
        files: Mapping[str, bytes | str] | None = None,
    ) -> Path:
        """Write a model and return its folder. Existing files of that name stay.

        - `config`: the text of `config.pbtxt` (None: no such file).
        - `versions`: the files of each version by relative path (default: an empty version 1).
        - `files`: other files in the model's folder, such as labels.
        """
        folder = self.path / name
        for version, content in ({1: {}} if versions is None else versions).items():
            (folder / str(version)).mkdir(parents=True, exist_ok=True)
            _write(folder / str(version), content)
        _write(folder, files or {})
        if config is not None:
            _write(folder, {"config.pbtxt": config})
        return folder

    def remove(self, name: str, version: int | None = None) -> None:
        """Delete a model, or one of its versions."""
        shutil.rmtree(self.path / name if version is None else self.path / name / str(version))


def _write(folder: Path, files: Mapping[str, bytes | str]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
