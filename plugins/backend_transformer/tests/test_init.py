"""`tritonpy init` makes a model from the folder of a converted transformer."""

from __future__ import annotations

from pathlib import Path

from tritonpy.config import read_config_text
from tritonpy.plugins import make_plugin_manager
from tritonpy_lint.linting import LintOptions, lint
from tritonpy_lint.model_scaffold import init_model


def test_a_converted_folder_becomes_a_model(encoder, tmp_path: Path) -> None:
    made = init_model(encoder[0], tmp_path / "models", make_plugin_manager(), "embeddings")
    assert made.backend == "transformer"
    text = (tmp_path / "models" / "embeddings" / "config.pbtxt").read_text()
    config = read_config_text(text).config
    assert config.backend == "transformer"
    assert config.input
    assert config.output
    assert lint(LintOptions(paths=[str(tmp_path / "models")])).findings == []
