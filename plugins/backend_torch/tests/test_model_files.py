from __future__ import annotations

import pytest

from tritonpy import InvalidArgument, Unavailable
from tritonpy_backend_torch.archive import Form
from tritonpy_backend_torch.model_files import ModelFiles, model_files

from .making import Linear


@pytest.fixture
def found(models):
    return lambda filename="", runtime="": model_files(models.folder, filename, runtime, "m")


def test_the_files_name_is_the_configurations(models, found):
    models.script(Linear(), "net.pt")
    assert found("net.pt") == ModelFiles(models.folder / "net.pt", Form.TORCHSCRIPT)


def test_without_a_name_the_default_that_is_there_is_taken(models, found):
    models.linear_export()
    assert found() == ModelFiles(models.folder / "model.pt2", Form.EXPORTED)


@pytest.mark.parametrize("weights", ["model.safetensors", "model.pt", None])
def test_the_python_runtime_is_a_class_with_weights_beside_it(models, found, weights):
    models.python(weights=weights)
    beside = None if weights is None else models.folder / weights
    assert found("model.pt", "model.py") == ModelFiles(models.folder / "model.py", Form.PYTHON, beside)
    assert found("model.py") == ModelFiles(models.folder / "model.py", Form.PYTHON, beside)


def test_a_folder_with_nothing_but_a_class_needs_no_runtime(models, found):
    models.python()
    assert found("model.pt").form is Form.PYTHON


def test_a_script_beside_a_python_file_is_the_model_unless_the_runtime_says_otherwise(models, found):
    models.script(Linear())
    models.python(weights=None)
    assert found("model.pt").form is Form.TORCHSCRIPT
    assert found("model.pt", "model.py").form is Form.PYTHON


def test_the_python_runtime_serves_a_script_where_there_is_no_class(models, found):
    models.script(Linear())
    assert found("model.pt", "model.py").form is Form.TORCHSCRIPT


def test_no_file_is_said_as_in_triton(models, found):
    with pytest.raises(Unavailable) as refused:
        found("model.pt")
    assert refused.value.message == f"unable to find '{models.folder}/model.pt' for model instance 'm'"


def test_weights_alone_ask_for_their_class(models, found):
    models.python().unlink()
    with pytest.raises(
        Unavailable, match=r"holds weights alone; put the class that they belong to beside it, as 'model\.py'"
    ):
        found("model.pt")
    with pytest.raises(InvalidArgument, match="holds weights alone"):
        found("model.safetensors")


def test_pickled_weights_beside_a_class_are_its_weights(models, found):
    models.python(weights="model.pt")
    assert found("model.pt") == ModelFiles(models.folder / "model.py", Form.PYTHON, models.folder / "model.pt")


def test_a_file_outside_the_models_folder_is_refused(models, found):
    with pytest.raises(InvalidArgument, match="is outside the model's folder"):
        found("../../model.pt")
