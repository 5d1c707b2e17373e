"""A repository in a temporary folder, and a small ONNX model for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

CODE = """class TritonPythonModel:
    def execute(self, requests):
        return []
"""
TENSORS = (
    'input { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] }\n'
    'output { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] }\n'
)
BASE = f'backend: "python"\nmax_batch_size: 8\ndynamic_batching {{ }}\n{TENSORS}'


class Repository:
    """Writes models into a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()

    def add(self, name: str, config: str | None = BASE, **files: str) -> Path:
        """Write a Python model and return its folder; `files` are further files by their path."""
        folder = self.path / name
        content: Mapping[str, str] = {"1/model.py": CODE, **files}
        for path, text in content.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        if config is not None:
            (folder / "config.pbtxt").write_text(config, encoding="utf-8")
        return folder


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """An empty repository."""
    return Repository(tmp_path / "models")
