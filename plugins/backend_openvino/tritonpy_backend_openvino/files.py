"""The files that hold a model."""

from __future__ import annotations

from pathlib import Path

from tritonpy import Unavailable, resolve_model_file

# By format: OpenVINO's own, ONNX, PaddlePaddle, TensorFlow as a saved model and as a frozen graph, TensorFlow Lite.
FILENAMES = ("model.xml", "model.onnx", "model.pdmodel", "model.saved_model", "model.pb", "model.tflite")


def model_file(version_folder: Path, chosen: str, model: str) -> Path:
    """Return the file `chosen`, or the first of `FILENAMES` that is there where none is; raises Unavailable where there is none.

    A folder `model.onnx` with a file `model.onnx` inside is that file, as weights may lie beside it.
    """
    if chosen:
        path = resolve_model_file(chosen, version_folder, version_folder.parent)
    else:
        path = next(
            (found for name in FILENAMES if (found := version_folder / name).exists()), version_folder / FILENAMES[0]
        )
    if path.is_dir() and (path / path.name).is_file():
        path /= path.name
    if not path.exists():
        raise Unavailable(f"unable to find '{path}' for model '{model}'")
    return path
