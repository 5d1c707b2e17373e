from __future__ import annotations

import pytest

from tritonpy import InvalidArgument, Unavailable
from tritonpy_backend_torch.archive import ArchiveFormat
from tritonpy_backend_torch.model_files import ModelFiles, model_files

from .models import Linear


@pytest.fixture
def found(models):
    return lambda filename="", runtime="": model_files(models.folder, filename, runtime, "m")


def test_the_configured_file_name_is_used(models, found):
    models.script(Linear(), "net.pt")
    assert found("net.pt") == ModelFiles(models.folder / "net.pt", ArchiveFormat.TORCHSCRIPT)


def test_without_a_name_the_existing_default_is_used(models, found):
    models.linear_export()
    assert found() == ModelFiles(models.folder / "model.pt2", ArchiveFormat.EXPORTED)


@pytest.mark.parametrize("weights", ["model.safetensors", "model.pt", None])
def test_the_python_runtime_uses_a_class_with_weights_next_to_it(models, found, weights):
    models.python(weights=weights)
    weights_path = None if weights is None else models.folder / weights
    assert found("model.pt", "model.py") == ModelFiles(
        models.folder / "model.py", ArchiveFormat.PYTHON, weights_path
    )
    assert found("model.py") == ModelFiles(
        models.folder / "model.py", ArchiveFormat.PYTHON, weights_path
    )


def test_a_folder_with_nothing_but_a_class_needs_no_runtime(models, found):
    models.python()
    assert found("model.pt").model_format is ArchiveFormat.PYTHON


def test_a_script_next_to_a_python_file_is_the_model_by_default(models, found):
    models.script(Linear())
    models.python(weights=None)
    assert found("model.pt").model_format is ArchiveFormat.TORCHSCRIPT
    assert found("model.pt", "model.py").model_format is ArchiveFormat.PYTHON


def test_the_python_runtime_serves_a_script_without_a_class(models, found):
    models.script(Linear())
    assert found("model.pt", "model.py").model_format is ArchiveFormat.TORCHSCRIPT


def test_a_missing_file_gets_tritons_text(models, found):
    with pytest.raises(Unavailable) as refused:
        found("model.pt")
    assert (
        refused.value.message == f"unable to find '{models.folder}/model.pt' for model instance 'm'"
    )


def test_weights_without_a_class_are_rejected(models, found):
    models.python().unlink()
    with pytest.raises(
        Unavailable,
        match=r"contains only weights; put the file with their class next to it, as 'model\.py'",
    ):
        found("model.pt")
    with pytest.raises(InvalidArgument, match="contains only weights"):
        found("model.safetensors")


def test_pickled_weights_next_to_a_class_are_used(models, found):
    models.python(weights="model.pt")
    assert found("model.pt") == ModelFiles(
        models.folder / "model.py", ArchiveFormat.PYTHON, models.folder / "model.pt"
    )


def test_a_file_outside_the_models_folder_is_refused(models, found):
    with pytest.raises(InvalidArgument, match="is outside the model's folder"):
        found("../../model.pt")
