"""Import of TensorRT's Python bindings, of the full or the lean runtime."""

from __future__ import annotations

import importlib
from typing import Any

from tritonpy import Unavailable
from tritonpy.plugins import install_command

FULL, LEAN = "full", "lean"
_MODULES = {FULL: "tensorrt", LEAN: "tensorrt_lean"}


def import_tensorrt(wanted: str = "any") -> Any:
    """Return the bindings module for `wanted` (any, full, lean); "any" prefers the full runtime.

    Raises `Unavailable` if the module or a CUDA library that it needs is missing.
    """
    failures = []
    for kind, name in _MODULES.items():
        if wanted in {"any", kind}:
            try:
                return importlib.import_module(name)
            # OSError: the package is installed, but a library is missing
            except (ImportError, OSError) as error:
                failures.append(f"{name}: {error}")
    remedy = (
        f"{install_command('tritonpy-backend-trt[full]')}, or '[lean]' for version-compatible "
        "engines"
    )
    raise Unavailable(f"TensorRT cannot be imported ({'; '.join(failures)}): {remedy}")
