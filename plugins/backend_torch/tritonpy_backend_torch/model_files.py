"""Which files of a version's folder make the model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tritonpy import InvalidArgument, Unavailable, resolve_model_file
from tritonpy_backend_torch.archive import Form, form_of

DEFAULT_FILENAMES = ("model.pt", "model.pt2")
PYTHON_RUNTIME = "model.py"  # what the configuration's `runtime` says of a model that is a Python class
_CLASS_FILE = "model.py"
_WEIGHTS = (".safetensors", ".safetensors.index.json", ".pt", ".pth")  # beside the class, in this order


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The file of the model, what it is, and where its weights lie if they are not in it (None: it has none)."""

    path: Path
    form: Form
    weights: Path | None = None


def model_files(folder: Path, filename: str, runtime: str, model: str) -> ModelFiles:
    """Return the files of the model `model` in the version's `folder`.

    `filename` is the configuration's default file name, filled in or given, `runtime` its runtime: "model.py" asks for a Python class. A class is
    also what serves a folder that holds nothing else, or pickled weights beside it. Raises Unavailable where there is no file, InvalidArgument
    where it is no model.
    """
    path = resolve_model_file(filename or _default(folder), folder, folder.parent)
    class_file = path if path.suffix == ".py" else folder / _CLASS_FILE
    has_class = class_file.is_file()
    if has_class and (path == class_file or runtime == PYTHON_RUNTIME or not path.is_file()):
        return ModelFiles(class_file, Form.PYTHON, _weights(class_file))
    if not path.is_file():
        raise Unavailable(f"unable to find '{path}' for model instance '{model}'{_hint(folder)}")
    if path.suffix == ".safetensors":
        raise InvalidArgument(_without_class(path))
    form = form_of(path)
    if has_class and form is Form.PICKLE:
        return ModelFiles(class_file, Form.PYTHON, path)
    return ModelFiles(path, form)


def _default(folder: Path) -> str:
    return next((name for name in DEFAULT_FILENAMES if (folder / name).is_file()), DEFAULT_FILENAMES[0])


def _weights(class_file: Path) -> Path | None:
    candidates = [class_file.with_suffix(ending) for ending in _WEIGHTS]
    return next((path for path in candidates if path.is_file()), None)


def _hint(folder: Path) -> str:
    weights = folder / "model.safetensors"
    return f": {_without_class(weights)}" if weights.is_file() else ""


def _without_class(weights: Path) -> str:
    return f"'{weights}' holds weights alone; put the class that they belong to beside it, as '{_CLASS_FILE}'"
