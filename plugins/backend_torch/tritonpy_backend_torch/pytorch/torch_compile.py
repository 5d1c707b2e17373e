"""Compilation of modules with `torch.compile`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tritonpy import InvalidArgument
from tritonpy_backend_torch.settings import COMPILE

_COMPILER_MISSING = (
    "torch.compile needs a C++ compiler on the server (g++ or clang): install one, or set {key} to "
    '{{"disable": true}} or to another {{"backend": …}}'
)


def compile_module(module: Any, arguments: Mapping[str, Any]) -> Any:
    """Return `module` wrapped by `torch.compile`, which compiles it at its first run.

    Raises `InvalidArgument` for arguments that `torch.compile` rejects, or if the compiler that it
    needs is missing.
    """
    uses_inductor = arguments.get("backend", "inductor") == "inductor" and not arguments.get(
        "disable", False
    )
    if uses_inductor and not has_compiler():
        raise InvalidArgument(_COMPILER_MISSING.format(key=COMPILE))
    try:
        return torch.compile(module, **arguments)
    except Exception as error:
        raise InvalidArgument(
            f"torch.compile rejects the arguments in {COMPILE}: {error}"
        ) from error


def has_compiler() -> bool:
    """Return whether a C++ compiler for host code is installed."""
    from torch._inductor.cpp_builder import get_cpp_compiler

    try:
        get_cpp_compiler()
    except Exception:
        return False
    return True
