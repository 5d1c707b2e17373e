"""The models of real sizes: each takes its input and returns an output of its width."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from bench.real_model_files import MODELS, RealModel


@pytest.mark.parametrize("name", ["resnet50", "minilm", "trees", "perceptron"])
def test_a_model_computes_its_output(name: str, tmp_path: Path) -> None:
    model: RealModel = MODELS[name]
    model.write(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (output,) = session.run(None, {model.name: model.row()})
    assert output.shape == (1, model.width)
    assert np.isfinite(output).all()


def test_the_perceptron_has_one_megabyte_of_weights(tmp_path: Path) -> None:
    MODELS["perceptron"].write(tmp_path / "model.onnx")
    assert 0.9e6 < (tmp_path / "model.onnx").stat().st_size < 1.1e6
