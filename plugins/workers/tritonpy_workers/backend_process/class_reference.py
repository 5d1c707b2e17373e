"""Import references to backend classes for other processes."""

from __future__ import annotations

import importlib
import sys
from functools import reduce
from types import ModuleType
from typing import Any

from tritonpy import Backend, InvalidArgument, Unavailable


def reference_of(backend: type[Backend]) -> str:
    """Return "module:Class". Raises `InvalidArgument` if the class cannot be imported that way."""
    module, name = backend.__module__, backend.__qualname__
    if module == "__main__" or _attribute(sys.modules.get(module), name) is not backend:
        raise InvalidArgument(
            f"the backend class {module}.{name} cannot run in a process of its own: "
            "it must be defined at the top of a module that can be imported by name"
        )
    return f"{module}:{name}"


def resolve(reference: str) -> type[Backend]:
    """Return the referenced class. Raises `Unavailable` with the reason if the import fails."""
    module, _, name = reference.partition(":")
    try:
        backend: type[Backend] = _attribute(importlib.import_module(module), name)
    except Exception as error:
        raise Unavailable(
            f"the backend '{reference}' cannot be imported in a worker process: {type(error).__name__}: {error}"
        ) from error
    if backend is None:
        raise Unavailable(f"the backend '{reference}' does not exist any more: was its module replaced?")
    return backend


def _attribute(module: ModuleType | None, name: str) -> Any:
    return reduce(lambda found, part: getattr(found, part, None), name.split("."), module)
