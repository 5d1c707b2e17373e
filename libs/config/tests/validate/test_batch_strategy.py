from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf import text_format

from tritonpy_config.validate.batch_strategy import (
    batch_library_problems,
    batch_strategy_problems,
    with_batch_library,
)
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_types.errors import InvalidArgument, NotFound

DYNAMIC = "dynamic_batching { }"
PARAMETER = "TRITON_BATCH_STRATEGY_PATH"


def parsed(text: str) -> ModelConfig:
    return text_format.Parse(text, ModelConfig(name="m"))


def named(path: object) -> str:
    return f'parameters {{ key: "{PARAMETER}" value {{ string_value: "{path}" }} }}'


@pytest.fixture
def folders(tmp_path: Path) -> list[Path | None]:
    """The folders of a version, its model and its backend."""
    found = [tmp_path / "m" / "1", tmp_path / "m", tmp_path / "backend"]
    for folder in found:
        folder.mkdir(parents=True, exist_ok=True)
    return list(found)


def library(config: ModelConfig, folders: list[Path | None]) -> str:
    return with_batch_library(config, folders).parameters[PARAMETER].string_value


def test_sequence_models_get_tritons_text() -> None:
    ((path, text),) = [
        (each.path, each.text)
        for each in batch_strategy_problems(parsed(named("x.so") + "sequence_batching {}"))
    ]
    assert path == f'parameters["{PARAMETER}"]'
    assert text == (
        "TRITON_BATCH_STRATEGY_PATH cannot be specified with sequence batcher, "
        "using default batching strategy"
    )


def test_the_first_of_the_three_folders_wins(folders: list[Path | None]) -> None:
    for folder in reversed(folders):
        assert folder is not None
        (folder / "batchstrategy.so").touch()
        assert library(parsed(DYNAMIC), folders) == str(folder / "batchstrategy.so")


def test_a_named_library_is_relative_to_the_model(folders: list[Path | None]) -> None:
    _, model, _ = folders
    assert model is not None
    (model / "rules.so").touch()
    for name in ("rules.so", model / "rules.so", "1/../rules.so"):
        assert library(parsed(DYNAMIC + named(name)), folders) == str(model / "rules.so")


@pytest.mark.parametrize("text", ["", "sequence_batching { }", "ensemble_scheduling { }"])
def test_only_dynamic_batching_uses_a_library(folders: list[Path | None], text: str) -> None:
    _, model, _ = folders
    assert model is not None
    (model / "batchstrategy.so").touch()
    config = parsed(text)
    assert with_batch_library(config, folders) is config


def test_the_given_configuration_does_not_change(folders: list[Path | None]) -> None:
    version = folders[0]
    assert version is not None
    (version / "batchstrategy.so").touch()
    config = parsed(DYNAMIC)
    library(config, [version, None, None])
    assert PARAMETER not in config.parameters


@pytest.mark.parametrize("name", ["../x.so", "/etc/passwd", "1/../../x.so"])
def test_a_library_outside_of_the_model_is_refused(folders: list[Path | None], name: str) -> None:
    with pytest.raises(InvalidArgument, match="escapes model repository"):
        library(parsed(DYNAMIC + named(name)), folders)


def test_a_missing_library_is_named(folders: list[Path | None]) -> None:
    config = parsed(DYNAMIC + named("no.so"))
    with pytest.raises(NotFound, match=r"Batching library path not found: no\.so"):
        library(config, folders)
    model = folders[1]
    assert model is not None
    assert [each.text for each in batch_library_problems(config, model)] == [
        "Batching library path not found: no.so"
    ]
    assert list(batch_library_problems(parsed(DYNAMIC), model)) == []
