from __future__ import annotations

import pytest

from tritonpy import InvalidArgument, Unavailable
from tritonpy_backend_openvino.model_file import FILENAMES, model_file


@pytest.mark.parametrize("count", range(1, len(FILENAMES) + 1))
def test_the_first_existing_file_is_served(tmp_path, count):
    for name in FILENAMES[-count:]:
        (tmp_path / name).touch()
    assert model_file(tmp_path, "", "m") == tmp_path / FILENAMES[-count]


def test_the_configured_file_is_used(tmp_path):
    for name in (*FILENAMES, "other.onnx"):
        (tmp_path / name).touch()
    assert model_file(tmp_path, "model.onnx", "m") == tmp_path / "model.onnx"
    assert model_file(tmp_path, "other.onnx", "m") == tmp_path / "other.onnx"


def test_a_saved_model_is_a_folder_and_an_onnx_file_may_lie_in_one(tmp_path):
    (tmp_path / "model.saved_model").mkdir()
    assert model_file(tmp_path, "", "m") == tmp_path / "model.saved_model"
    (tmp_path / "model.onnx").mkdir()
    (tmp_path / "model.onnx" / "model.onnx").touch()
    assert model_file(tmp_path, "", "m") == tmp_path / "model.onnx" / "model.onnx"


@pytest.mark.parametrize(("chosen", "named"), [("", "model.xml"), ("model.pb", "model.pb")])
def test_a_missing_file_is_named_with_tritons_text(tmp_path, chosen, named):
    with pytest.raises(Unavailable) as caught:
        model_file(tmp_path, chosen, "m")
    assert caught.value.message == f"unable to find '{tmp_path}/{named}' for model 'm'"


def test_a_file_outside_the_models_folder_is_refused(tmp_path):
    with pytest.raises(InvalidArgument, match="is outside the model's folder"):
        model_file(tmp_path, "../../model.xml", "m")
