"""The file of a model's class, found and imported as Triton does it."""

from __future__ import annotations

import os
import sys
from typing import Any

from .failure import Refused

_SUFFIX = ".py"


def load_class(model_file: str, backend_directory: str) -> tuple[Any, str]:
    """Import the file of a model, or the `model.py` of the folder of its Python-based backend; return its module and its path.

    The module of a model is `<version>.<name>`, with the folders of version and model on the path: it can import its neighbours, by
    relative imports as well. A second time costs nothing. Raises Refused, and what the import raises.
    """
    path = class_file(model_file, backend_directory)
    folder, file = os.path.split(path)
    name = file[: -len(_SUFFIX)]
    sys.path.append(folder)
    if not backend_directory:
        above, version = os.path.split(folder)
        sys.path.append(above)
        name = f"{version}.{name}"
    return import_module(name), path


def class_file(model_file: str, backend_directory: str) -> str:
    """Return the path of the file. Raises Refused where there is none."""
    path = os.path.join(backend_directory, "model.py") if backend_directory else model_file
    file = os.path.basename(path)
    if not file.endswith(_SUFFIX):
        raise Refused(f"Model name must end with '.py'. Model name is \"{file}\".")
    if not os.path.exists(path):
        raise Refused(f"Python model file not found in '{path}'")
    return path


def import_module(name: str) -> Any:
    """Import and return a module. Raises what the import raises."""
    __import__(name)
    return sys.modules[name]
