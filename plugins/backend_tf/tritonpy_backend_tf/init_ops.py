"""The operations that prepare a graph before it serves: the file that the parameter TF_INIT_OPS_FILE names."""

from __future__ import annotations

import json
from pathlib import Path

from tritonpy import Internal, resolve_model_file


def init_ops(filename: str, version_folder: Path, model_folder: Path) -> list[str]:
    """Return the names that `{"init_ops": […]}` lists; the file of the version wins over that of the model.

    No file name, no operations. Raises Internal where the file is missing or says something else.
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
        raise Internal(f'{path} must be of the form {{"init_ops": ["name", …]}}: {error!r}') from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Internal(f'{path} must be of the form {{"init_ops": ["name", …]}}')
    return names
