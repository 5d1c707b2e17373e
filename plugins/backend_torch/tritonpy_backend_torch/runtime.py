"""Import of the code that needs PyTorch, delayed until the first model loads.

The import takes seconds and 200 MB.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType

from tritonpy import Unavailable


def import_pytorch() -> ModuleType:
    """Return the package `pytorch`; raise `Unavailable` if PyTorch cannot be imported."""
    try:
        return importlib.import_module("tritonpy_backend_torch.pytorch")
    except (ImportError, OSError) as error:
        raise Unavailable(
            f"PyTorch cannot be imported ({error}): pip install torch, with the package index "
            "for your devices from https://pytorch.org"
        ) from error


def has_cuda() -> bool:
    """Return whether the installed PyTorch was built for CUDA, without importing it."""
    spec = importlib.util.find_spec("torch")
    folders = spec.submodule_search_locations if spec is not None else None
    return any(
        (Path(folder) / "lib" / library).is_file()
        for folder in folders or ()
        for library in ("libtorch_cuda.so", "torch_cuda.dll")
    )
