"""`torch.compile`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tritonpy import InvalidArgument
from tritonpy_backend_torch.settings import COMPILE

_COMPILER_NEEDED = (
    "torch.compile needs a C++ compiler on the machine that serves (g++ or clang): install one, or set {key} to "
    '{{"disable": true}} or to another {{"backend": …}}'
)


def compiled(module: Any, arguments: Mapping[str, Any]) -> Any:
    """Return `module` compiled, which happens when it first runs; raises InvalidArgument for arguments that `torch.compile` does not take.

    Also where the compiler that it would need is not there.
    """
    uses_inductor = arguments.get("backend", "inductor") == "inductor" and not arguments.get("disable", False)
    if uses_inductor and not has_compiler():
        raise InvalidArgument(_COMPILER_NEEDED.format(key=COMPILE))
    try:
        return torch.compile(module, **arguments)
    except Exception as error:
        raise InvalidArgument(f"torch.compile refuses what {COMPILE} asks for: {error}") from error


def has_compiler() -> bool:
    """Say whether there is a C++ compiler for code that runs on the host."""
    from torch._inductor.cpp_builder import get_cpp_compiler

    try:
        get_cpp_compiler()
    except Exception:
        return False
    return True
