"""Where the library of a backend is."""

from __future__ import annotations

from pathlib import Path

from tritonpy import InvalidArgument, ModelContext


def find_library(model: ModelContext) -> Path:
    """Return the path of the library that serves the model, searched as Triton does.

    It is in the folder of the version, of the model, or of the backend. Raises `InvalidArgument`
    with Triton's text if it does not exist or leaves its folder.
    """
    backend = model.config.backend
    name = model.config.runtime or f"libtriton_{backend}.so"
    folders = [model.path, model.directory]
    if model.backend_directory is not None:
        folders.append(model.backend_directory)
    for folder in folders:
        path = folder / name
        if not path.is_file():
            continue
        if not path.resolve().is_relative_to(folder.resolve()):
            raise InvalidArgument(
                f"backend library name '{name}' escapes backend directory '{folder}', for model "
                f"'{model.name}', check model config runtime field"
            )
        return path
    searched = " ".join(f"'{folder}'" for folder in folders)
    raise InvalidArgument(
        f"unable to find backend library '{name}' for model '{model.name}', searched: {searched} "
    )
