"""The load request's own files: a temporary model folder that hides the one on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from tritonpy.errors import InvalidArgument


def write_override(name: str, files: Mapping[str, bytes]) -> tempfile.TemporaryDirectory[str]:
    """Write `files` ("file:<path in the model's folder>" -> content) into a new folder; the caller cleans it up.

    Raises InvalidArgument for a path that leaves the folder.
    """
    folder = tempfile.TemporaryDirectory(prefix=f"tritonpy-{PurePosixPath(name).name}-")
    try:
        for key, content in files.items():
            target = Path(folder.name) / _relative(key)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    except BaseException:
        folder.cleanup()
        raise
    return folder


def check_file_names(keys: Iterable[str]) -> None:
    """Raise InvalidArgument for a name that no file can have."""
    for key in keys:
        if "\0" in key:
            raise InvalidArgument(f"Invalid file parameter {key!r}: the name of a file has no null character")


def _relative(key: str) -> PurePosixPath:
    path = PurePosixPath(key.removeprefix("file:"))
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise InvalidArgument(
            f"load parameter '{key}' must name a file in the model's folder, such as 'file:1/model.onnx'"
        )
    return path
