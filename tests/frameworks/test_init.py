"""`tritonpy init` makes a model from a file of every format; it loads and answers its sample."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Serve
from tritonpy.plugins import make_plugin_manager
from tritonpy_lint.linting import LintOptions, lint
from tritonpy_lint.model_scaffold import init_model

# TorchScript does not describe its tensors, so its configuration needs a person.
FORMATS = ("onnx", "exported", "openvino", "savedmodel", "graphdef", "keras")


@pytest.fixture(scope="module")
def repository(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a model per format, made from the model's file alone."""
    folder = tmp_path_factory.mktemp("init")
    manager = make_plugin_manager()
    for name in FORMATS:
        version = made / f"digits_{name}" / "1"
        source = min(
            path for path in version.iterdir() if path.suffix not in {".bin", ".data", ".npz"}
        )
        init_model(source, folder, manager, f"digits_{name}")
    return folder


def test_models_have_no_finding(repository: Path) -> None:
    assert [each.message for each in lint(LintOptions(paths=[str(repository)])).findings] == []


def test_samples_are_answered(repository: Path, serve: Serve) -> None:
    with serve(f"--model-repository={repository}") as running:
        for name in FORMATS:
            body = (repository / f"digits_{name}" / "sample.json").read_text()
            response = running.request(f"/v2/models/digits_{name}/infer", body)
            assert response.status == 200, response.body
