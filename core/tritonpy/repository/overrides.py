"""The files of a load request, in a temporary model folder that replaces the one on disk."""

from __future__ import annotations

import errno
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from tritonpy_config.model_files import relative_parts, shortened
from tritonpy_types.errors import InvalidArgument

_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]")
_MAX_PREFIX = 64


def write_override(name: str, files: Mapping[str, bytes]) -> tempfile.TemporaryDirectory[str]:
    """Write `files` ("file:<path in the model's folder>" -> content) into a new temporary folder.

    The caller cleans it up. A leading slash of a path is dropped, as in Triton. Raises
    `InvalidArgument` for a path outside the folder or an invalid file name.
    """
    paths = {key: _relative(key) for key in files}
    folder = tempfile.TemporaryDirectory(
        prefix=f"tritonpy-{_UNUSUAL.sub('_', name)[:_MAX_PREFIX]}-"
    )
    try:
        for key, content in files.items():
            _write(key, Path(folder.name, *paths[key]), content)
    except BaseException:
        folder.cleanup()
        raise
    return folder


def _write(key: str, target: Path, content: bytes) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise InvalidArgument(
            f"load parameter '{key}' names a file that is a folder in another parameter"
        ) from error
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:  # file systems with shorter limits than usual
            raise
        raise InvalidArgument(f"load parameter '{shortened(key)}' is too long") from error


def check_file_names(keys: Iterable[str]) -> None:
    """Raise `InvalidArgument` for an invalid file name."""
    for key in keys:
        if "\0" in key:
            raise InvalidArgument(
                f"Invalid file parameter {shortened(key)!r}: a file name cannot contain a null "
                "character"
            )


def _relative(key: str) -> list[str]:
    name = key.removeprefix("file:")
    try:
        parts = [] if ".." in PurePosixPath(name).parts else relative_parts(name)
    except InvalidArgument as error:
        raise InvalidArgument(f"load parameter 'file:': {error}") from error
    if not parts:
        raise InvalidArgument(
            f"load parameter '{shortened(key)}' must name a file in the model's folder, "
            "such as 'file:1/model.onnx'"
        )
    return parts
