"""What is wrong with the layout of a model's folder, in words that say what to do. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from tritonpy.config.known_backends import ModelFormat

_ALIASES = {".pth": ".pt", ".jit": ".pt", ".engine": ".plan", ".trt": ".plan", ".pb": ".graphdef"}
_SHOWN = 3  # names of files in one sentence
_ABOUT_MODELS = {"config.pbtxt", "configs", "warmup"}


def layout_hint(model: str, files: Iterable[str], formats: Sequence[ModelFormat]) -> str:
    """Return what keeps the files of `model` from being a model that serves; empty where they look right.

    `files` are paths relative to the model's folder; `formats` are the known file names of models.
    """
    paths = [PurePosixPath(path) for path in files]
    versions = sorted({path.parts[0] for path in paths if _is_version(path.parts[0]) and len(path.parts) > 1}, key=int)
    empty = sorted(file.rstrip("/") for file in map(str, paths) if _is_version(file) and file not in versions)
    if versions or empty:
        return _version_hint(versions, empty, paths, formats)
    for path in paths:
        form = _like(path.name, formats)
        if form is not None and len(path.parts) == 1:
            return f"'{path}' lies in the model's folder: move it into a version folder, as '{model}/1/{form.filename}'"
    folders = sorted({path.parts[0] for path in paths if len(path.parts) > 1} - _ABOUT_MODELS)
    if folders:
        return (
            f"'{folders[0]}' is not a version folder: rename it to a positive number without leading zeros, such as '1'"
        )
    return f"it has no version folder: put the model's file into '{model}/1/'"


def _version_hint(
    versions: Sequence[str], empty: Sequence[str], paths: Sequence[PurePosixPath], formats: Sequence[ModelFormat]
) -> str:
    if not versions:
        return f"the version folder '{empty[0]}' is empty: put the model's file into it"
    version = versions[0]
    names = sorted({path.parts[1] for path in paths if path.parts[0] == version and len(path.parts) > 1})
    if any(name == form.filename for name in names for form in formats):
        return ""
    for name in names:
        form = _like(name, formats)
        if form is not None:
            return (
                f"'{version}/{name}' does not have the name that is looked for: rename it to '{version}/{form.filename}', or write "
                f'backend: "{form.backend}" default_model_filename: "{name}" in config.pbtxt'
            )
    listed = ", ".join(f"'{name}'" for name in names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    return (
        f"the version folder '{version}' holds {listed}: give the model's file a known name, such as 'model.onnx', or name "
        "backend and default_model_filename in config.pbtxt"
    )


def _like(name: str, formats: Sequence[ModelFormat]) -> ModelFormat | None:
    """Return the kind of model that a file called `name` is by its ending, None where it is none."""
    suffix = PurePosixPath(name).suffix.lower()
    suffix = _ALIASES.get(suffix, suffix)
    return next((form for form in formats if suffix and PurePosixPath(form.filename).suffix == suffix), None)


def _is_version(name: str) -> bool:
    return name.isascii() and name.isdigit() and not name.startswith("0")
