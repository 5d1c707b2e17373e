"""The file of a model's class, found and imported by Triton's rules."""

from __future__ import annotations

import os
import sys
from typing import Any

from .failure import ModelContractError

_SUFFIX = ".py"


def load_class(model_file: str, backend_directory: str) -> tuple[Any, str]:
    """Import a model's file, or `model.py` of its Python-based backend.

    Return the module and its path. A model's module is `<version>.<name>`. The folders of version
    and model are on the path, so absolute and relative imports of files next to it work. A second
    import costs nothing. Raises `ModelContractError`, and exceptions of the import.
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
    """Return the path of the file. Raises `ModelContractError` if it does not exist."""
    path = os.path.join(backend_directory, "model.py") if backend_directory else model_file
    file = os.path.basename(path)
    if not file.endswith(_SUFFIX):
        raise ModelContractError(f"Model name must end with '.py'. Model name is \"{file}\".")
    if not os.path.exists(path):
        raise ModelContractError(f"Python model file not found in '{path}'")
    return path


def import_module(name: str) -> Any:
    """Import and return a module. Raises exceptions of the import."""
    __import__(name)
    return sys.modules[name]
