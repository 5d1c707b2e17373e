from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tritonpy import Internal, InvalidArgument, Unavailable
from tritonpy_backend_trt.plan_file import header, map_plan, plan_path

from .descriptions import config
from .simulated import plans


def model(folder, text=""):
    return SimpleNamespace(path=folder, directory=folder.parent, config=config(text), name="m")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "model.plan"),
        ("default_model_filename: 'other.plan'", "other.plan"),
        (
            "default_model_filename: 'other.plan' cc_model_filenames { key: '8.6' value: 'ada.plan' }",
            "ada.plan",
        ),
        ("cc_model_filenames { key: '7.5' value: 'turing.plan' }", "model.plan"),
    ],
)
def test_the_configuration_names_the_plan(tmp_path: Path, text, name):
    (tmp_path / name).touch()
    assert plan_path(model(tmp_path, text), "8.6", "m_0") == tmp_path / name


def test_a_missing_plan_is_named_with_tritons_text(tmp_path):
    with pytest.raises(Unavailable) as caught:
        plan_path(model(tmp_path), "8.6", "m_0")
    assert (
        caught.value.message
        == f"unable to find '{tmp_path / 'model.plan'}' for model instance 'm_0'"
    )


@pytest.mark.parametrize(
    "text",
    [
        "default_model_filename: '../../x.plan'",
        "cc_model_filenames { key: '8.6' value: '../../x.plan' }",
    ],
)
def test_a_plan_outside_the_models_folder_is_refused(tmp_path: Path, text):
    with pytest.raises(InvalidArgument, match="is outside the model's folder"):
        plan_path(model(tmp_path, text), "8.6", "m_0")


def test_a_plan_is_read_as_it_is(tmp_path):
    path = tmp_path / "model.plan"
    path.write_bytes(plans.double())
    assert header(path) == plans.double()[:28]
    with map_plan(path) as data:
        assert bytes(data) == plans.double()


def test_an_invalid_plan_is_rejected_before_tensorrt_reads_it(tmp_path):
    path = tmp_path / "model.plan"
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(Internal, match="is not a TensorRT plan: it is a ZIP archive"):
        header(path)
