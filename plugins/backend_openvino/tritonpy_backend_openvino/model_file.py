"""Location of the model file."""

from __future__ import annotations

from pathlib import Path

from tritonpy import Unavailable
from tritonpy.config import resolve_model_file

# By format: OpenVINO IR, ONNX, PaddlePaddle, TensorFlow SavedModel and frozen graph, TensorFlow
# Lite.
FILENAMES = (
    "model.xml",
    "model.onnx",
    "model.pdmodel",
    "model.saved_model",
    "model.pb",
    "model.tflite",
)


def model_file(version_folder: Path, chosen: str, model: str) -> Path:
    """Return the path of the file `chosen`, or if it is empty of the first existing default file.

    A folder `model.onnx` that contains `model.onnx` means that file; its weights may lie next to
    it. Raises `Unavailable` if no file exists.
    """
    if chosen:
        path = resolve_model_file(chosen, version_folder, version_folder.parent)
    else:
        path = next(
            (found for name in FILENAMES if (found := version_folder / name).exists()),
            version_folder / FILENAMES[0],
        )
    if path.is_dir() and (path / path.name).is_file():
        path /= path.name
    if not path.exists():
        raise Unavailable(f"unable to find '{path}' for model '{model}'")
    return path
