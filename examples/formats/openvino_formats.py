"""The digits model in OpenVINO's format."""

from __future__ import annotations

import tempfile
from pathlib import Path

import openvino

from examples.formats.digits import Weights
from examples.formats.torch_formats import write_onnx


def write_ir(folder: Path, weights: Weights) -> None:
    """Write `model.xml` and `model.bin`, converted from ONNX; weights stay FP32."""
    with tempfile.TemporaryDirectory() as made:
        write_onnx(Path(made), weights)
        model = openvino.convert_model(Path(made) / "model.onnx")
    openvino.save_model(model, folder / "model.xml", compress_to_fp16=False)
