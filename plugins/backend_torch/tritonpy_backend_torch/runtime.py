"""The one door to everything that imports PyTorch, which takes seconds and 200 MB: it opens when the first model loads."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType

from tritonpy import Unavailable


def serving() -> ModuleType:
    """Return the package `serving`; raises Unavailable where PyTorch is not installed or cannot be imported."""
    try:
        return importlib.import_module("tritonpy_backend_torch.serving")
    except (ImportError, OSError) as error:
        raise Unavailable(
            f"PyTorch cannot be imported ({error}): pip install torch, with the index of https://pytorch.org for your devices"
        ) from error


def has_cuda() -> bool:
    """Say whether the installed PyTorch was built for CUDA, without importing it."""
    spec = importlib.util.find_spec("torch")
    folders = spec.submodule_search_locations if spec is not None else None
    return any(
        (Path(folder) / "lib" / library).is_file()
        for folder in folders or ()
        for library in ("libtorch_cuda.so", "torch_cuda.dll")
    )
