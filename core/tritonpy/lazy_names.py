"""Names of a namespace that are imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def lazy_names(namespace: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of the module `namespace`.

    `modules` maps each module to the names that the namespace has from it. An import then costs
    only what is used, and a module may import from a namespace that has names of the module.
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module '{namespace}' has no attribute '{name}'")
        return getattr(importlib.import_module(module_of[name]), name)

    return get
