from __future__ import annotations

import pytest

from tritonpy_testing import ModelRepository


def test_the_fixture_creates_a_repository_layout(model_repository, tmp_path):
    assert isinstance(model_repository, ModelRepository)
    folder = model_repository.add(
        "digits",
        config='backend: "onnxruntime"',
        versions={1: {"model.onnx": b"one"}, 3: {"data/w.bin": b"three"}},
        files={"labels.txt": "a\nb"},
    )
    assert folder == tmp_path / "models" / "digits"
    assert (folder / "config.pbtxt").read_text() == 'backend: "onnxruntime"'
    assert (folder / "1" / "model.onnx").read_bytes() == b"one"
    assert (folder / "3" / "data" / "w.bin").read_bytes() == b"three"
    assert (folder / "labels.txt").read_text() == "a\nb"


def test_a_model_without_a_configuration_has_an_empty_version_one(model_repository):
    folder = model_repository.add("plain")
    assert [path.name for path in folder.iterdir()] == ["1"]


def test_adding_again_keeps_existing_files(model_repository):
    model_repository.add("model", config="", versions={1: {}})
    folder = model_repository.add("model", versions={2: {}})
    assert sorted(path.name for path in folder.iterdir()) == ["1", "2", "config.pbtxt"]


@pytest.mark.parametrize(("version", "left"), [(None, False), (1, True)])
def test_a_model_or_a_version_is_removed(model_repository, version, left):
    folder = model_repository.add("model")
    model_repository.remove("model", version)
    assert folder.exists() == left
    assert not (folder / "1").exists()
