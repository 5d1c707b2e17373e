"""The one place that imports TensorRT: the full runtime or the lean one, whichever is installed."""

from __future__ import annotations

import importlib
from typing import Any

from tritonpy import Unavailable, install_command

FULL, LEAN = "full", "lean"
_MODULES = {FULL: "tensorrt", LEAN: "tensorrt_lean"}


def bindings(wanted: str = "any") -> Any:
    """Return the module of TensorRT's bindings that `wanted` (any, full, lean) names; of both the full one.

    Raises Unavailable where it is not installed, or a library of CUDA that it needs is not there.
    """
    failures = []
    for kind, name in _MODULES.items():
        if wanted in {"any", kind}:
            try:
                return importlib.import_module(name)
            except (ImportError, OSError) as error:  # OSError: the package is there, a library of it is not
                failures.append(f"{name}: {error}")
    remedy = (
        f"{install_command('tritonpy-backend-trt[full]')}, or '[lean]' for engines that were built version-compatible"
    )
    raise Unavailable(f"TensorRT cannot be imported ({'; '.join(failures)}): {remedy}")
