"""Hints for models with a wrong folder layout. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from tritonpy_config.known_backends import ModelFormat

_ALIASES = {".pth": ".pt", ".jit": ".pt", ".engine": ".plan", ".trt": ".plan", ".pb": ".graphdef"}
_MAX_NAMES = 3  # number of file names in one sentence
_OTHER_ENTRIES = {"config.pbtxt", "configs", "warmup"}


def layout_hint(model: str, files: Iterable[str], formats: Sequence[ModelFormat]) -> str:
    """Return why the files of `model` do not form a model that can serve, or an empty text.

    `files` are paths relative to the model's folder; `formats` are the known file names of models.
    """
    paths = [PurePosixPath(path) for path in files]
    versions = sorted(
        {path.parts[0] for path in paths if _is_version(path.parts[0]) and len(path.parts) > 1},
        key=int,
    )
    empty = sorted(
        file.rstrip("/") for file in map(str, paths) if _is_version(file) and file not in versions
    )
    if versions or empty:
        return _version_hint(versions, empty, paths, formats)
    for path in paths:
        form = _matching_format(path.name, formats)
        if form is not None and len(path.parts) == 1:
            return (
                f"'{path}' is in the model's folder: move it into a version folder, "
                f"as '{model}/1/{form.filename}'"
            )
    folders = sorted({path.parts[0] for path in paths if len(path.parts) > 1} - _OTHER_ENTRIES)
    if folders:
        return (
            f"'{folders[0]}' is not a version folder: rename it to a positive number without "
            "leading zeros, such as '1'"
        )
    return f"it has no version folder: put the model's file into '{model}/1/'"


def _version_hint(
    versions: Sequence[str],
    empty: Sequence[str],
    paths: Sequence[PurePosixPath],
    formats: Sequence[ModelFormat],
) -> str:
    if not versions:
        return f"the version folder '{empty[0]}' is empty: put the model's file into it"
    version = versions[0]
    names = sorted(
        {path.parts[1] for path in paths if path.parts[0] == version and len(path.parts) > 1}
    )
    if any(name == form.filename for name in names for form in formats):
        return ""
    for name in names:
        form = _matching_format(name, formats)
        if form is not None:
            return (
                f"'{version}/{name}' does not have the expected name: rename it to "
                f"'{version}/{form.filename}', or write "
                f'backend: "{form.backend}" default_model_filename: "{name}" in config.pbtxt'
            )
    listed = ", ".join(f"'{name}'" for name in names[:_MAX_NAMES]) + (
        ", ..." if len(names) > _MAX_NAMES else ""
    )
    return (
        f"the version folder '{version}' contains {listed}: give the model's file a known name, "
        "such as 'model.onnx', or name "
        "backend and default_model_filename in config.pbtxt"
    )


def _matching_format(name: str, formats: Sequence[ModelFormat]) -> ModelFormat | None:
    """Return the model format that matches the suffix of `name`, or None."""
    suffix = PurePosixPath(name).suffix.lower()
    suffix = _ALIASES.get(suffix, suffix)
    return next(
        (form for form in formats if suffix and PurePosixPath(form.filename).suffix == suffix), None
    )


def _is_version(name: str) -> bool:
    return name.isascii() and name.isdigit() and not name.startswith("0")
