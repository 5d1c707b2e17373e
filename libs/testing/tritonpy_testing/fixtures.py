"""The pytest plugin: fixtures for every environment where tritonpy is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy_testing.model_repository import ModelRepository


@pytest.fixture
def model_repository(tmp_path: Path) -> ModelRepository:
    """An empty model repository.

    Example: `model_repository.add("name", config="…", versions={1: {"model.onnx": data}})`.
    """
    return ModelRepository(tmp_path / "models")
