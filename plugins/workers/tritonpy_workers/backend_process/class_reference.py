"""Import references to classes of backends and devices for other processes."""

from __future__ import annotations

import importlib
import sys
from functools import reduce
from types import ModuleType
from typing import Any

from tritonpy import InvalidArgument, Unavailable


def reference_of(target: type, what: str) -> str:
    """Return "module:Class" of a class, a "backend" or "device".

    Raises `InvalidArgument` if the class cannot be imported that way.
    """
    module, name = target.__module__, target.__qualname__
    if module == "__main__" or _attribute(sys.modules.get(module), name) is not target:
        raise InvalidArgument(
            f"the {what} class {module}.{name} cannot run in a process of its own: "
            "it must be defined at the top of a module that can be imported by name"
        )
    return f"{module}:{name}"


def resolve(reference: str, what: str) -> Any:
    """Return the referenced class. Raises `Unavailable` with the reason if the import fails."""
    module, _, name = reference.partition(":")
    try:
        target = _attribute(importlib.import_module(module), name)
    except Exception as error:
        raise Unavailable(
            f"the {what} '{reference}' cannot be imported in a worker process: "
            f"{type(error).__name__}: {error}"
        ) from error
    if target is None:
        raise Unavailable(
            f"the {what} '{reference}' does not exist any more: was its module replaced?"
        )
    return target


def _attribute(module: ModuleType | None, name: str) -> Any:
    return reduce(lambda found, part: getattr(found, part, None), name.split("."), module)
