"""Selection of the files in a version folder that make up the model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tritonpy import InvalidArgument, Unavailable
from tritonpy.config import resolve_model_file
from tritonpy_backend_torch.archive import ArchiveFormat, detect_format

DEFAULT_FILENAMES = ("model.pt", "model.pt2")
PYTHON_RUNTIME = "model.py"  # value of the configuration's `runtime` for a Python class
_CLASS_FILE = "model.py"
_WEIGHTS = (
    ".safetensors",
    ".safetensors.index.json",
    ".pt",
    ".pth",
)  # next to the class file, in this order


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The model file, its format, and its separate weights file (None: no such file)."""

    path: Path
    model_format: ArchiveFormat
    weights: Path | None = None


def model_files(folder: Path, filename: str, runtime: str, model: str) -> ModelFiles:
    """Return the files of `model` in the version folder `folder`.

    `filename` is the configuration's default file name and `runtime` its runtime; "model.py"
    selects a Python class. A class also serves a folder with nothing else but pickled weights.
    Raises `Unavailable` if no file exists, `InvalidArgument` if the file is not a model.
    """
    path = resolve_model_file(filename or _default(folder), folder, folder.parent)
    class_file = path if path.suffix == ".py" else folder / _CLASS_FILE
    has_class = class_file.is_file()
    if has_class and (path == class_file or runtime == PYTHON_RUNTIME or not path.is_file()):
        return ModelFiles(class_file, ArchiveFormat.PYTHON, _weights(class_file))
    if not path.is_file():
        raise Unavailable(f"unable to find '{path}' for model instance '{model}'{_hint(folder)}")
    if path.suffix == ".safetensors":
        raise InvalidArgument(_missing_class_message(path))
    model_format = detect_format(path)
    if has_class and model_format is ArchiveFormat.PICKLE:
        return ModelFiles(class_file, ArchiveFormat.PYTHON, path)
    return ModelFiles(path, model_format)


def _default(folder: Path) -> str:
    return next(
        (name for name in DEFAULT_FILENAMES if (folder / name).is_file()), DEFAULT_FILENAMES[0]
    )


def _weights(class_file: Path) -> Path | None:
    candidates = [class_file.with_suffix(ending) for ending in _WEIGHTS]
    return next((path for path in candidates if path.is_file()), None)


def _hint(folder: Path) -> str:
    weights = folder / "model.safetensors"
    return f": {_missing_class_message(weights)}" if weights.is_file() else ""


def _missing_class_message(weights: Path) -> str:
    return (
        f"'{weights}' contains only weights; put the file with their class next to it, "
        f"as '{_CLASS_FILE}'"
    )
