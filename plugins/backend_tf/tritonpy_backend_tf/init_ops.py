"""Initialization operations of a graph, listed in the file named by TF_INIT_OPS_FILE."""

from __future__ import annotations

import json
from pathlib import Path

from tritonpy import Internal
from tritonpy.config import resolve_model_file


def init_ops(filename: str, version_folder: Path, model_folder: Path) -> list[str]:
    """Return the operation names listed in `{"init_ops": […]}`; empty without a file name.

    A file in the version folder takes precedence over one in the model folder. Raises `Internal` if
    the file is missing or malformed.
    """
    if not filename:
        return []
    path = resolve_model_file(filename, version_folder, model_folder)
    if not path.is_file():
        path = resolve_model_file(filename, model_folder, model_folder)
    try:
        names = json.loads(path.read_bytes())["init_ops"]
    except OSError as error:
        raise Internal(f"failed to open text file for read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise Internal(
            f'{path} must be of the form {{"init_ops": ["name", …]}}: {error!r}'
        ) from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Internal(f'{path} must be of the form {{"init_ops": ["name", …]}}')
    return names
