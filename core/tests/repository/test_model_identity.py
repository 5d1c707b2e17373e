from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format

from tritonpy.api.contexts import ModelContext
from tritonpy.repository.model_loader import model_identity
from tritonpy_config.options import NoOptions
from tritonpy_protos.model_config_pb2 import ModelConfig


def context(
    folder: Path, config: str = 'backend: "toy"', name: str = "m", version: int = 1
) -> ModelContext:
    engine: Any = None
    made = text_format.Parse(config, ModelConfig(name=name))
    log = logging.LoggerAdapter(logging.getLogger("test"), {})
    return ModelContext(
        name, version, made, folder, folder / str(version), {}, {}, NoOptions(), engine, log
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a model's folder with two versions and a module."""
    made = tmp_path / "m"
    write(made / "1" / "model.onnx", "one")
    write(made / "1" / "parts" / "a.bin", "a")
    write(made / "2" / "model.onnx", "two")
    write(made / "labels.txt", "x")
    write(made / "lib" / "shared.py", "y")
    return made


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_in_a_private_cache_each_load_has_its_own_identity(folder: Path) -> None:
    assert model_identity(context(folder), False) != model_identity(context(folder), False)


def test_in_a_shared_cache_equal_models_have_the_same_identity(
    folder: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "elsewhere" / "m"
    for path in folder.rglob("*"):
        if path.is_file():
            write(copy / path.relative_to(folder), path.read_text())
    assert model_identity(context(folder), True) == model_identity(context(copy), True)


@pytest.mark.parametrize(
    "changed", ["1/model.onnx", "1/parts/a.bin", "labels.txt", "lib/shared.py", "1/new.bin"]
)
def test_every_file_of_the_version_affects_the_identity(folder: Path, changed: str) -> None:
    before = model_identity(context(folder), True)
    write(folder / changed, "changed")
    assert model_identity(context(folder), True) != before


def test_files_of_other_versions_do_not_matter(folder: Path) -> None:
    before = model_identity(context(folder), True)
    write(folder / "2" / "model.onnx", "changed")
    assert model_identity(context(folder), True) == before


def test_a_file_that_moves_matters(folder: Path) -> None:
    before = model_identity(context(folder), True)
    (folder / "1" / "parts" / "a.bin").rename(folder / "1" / "parts" / "b.bin")
    assert model_identity(context(folder), True) != before


def test_name_version_and_configuration_matter(folder: Path) -> None:
    contexts = [
        context(folder),
        context(folder, name="n"),
        context(folder, version=2),
        context(folder, 'backend: "toy" max_batch_size: 4'),
    ]
    contexts[3].namespace = "elsewhere"
    contexts.append(context(folder, 'backend: "toy" max_batch_size: 4'))
    assert len({model_identity(each, True) for each in contexts}) == 5


def test_each_load_of_an_ensemble_has_its_own_identity(folder: Path) -> None:
    ensemble = context(folder, "ensemble_scheduling {}")
    assert model_identity(ensemble, True) != model_identity(ensemble, True)
