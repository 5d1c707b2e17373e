"""The classes that serve frontends: their own, or those of a transport."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from tritonpy.plugins.manager import PluginManager


def frontend_classes(plugins: PluginManager, transports: Iterable[str]) -> Callable[[str], Any]:
    """Return a function that finds the class of a frontend by its name.

    `transports`, at most one, may carry the frontend. Raises PluginError for a transport that is
    not installed. The returned function raises it for a frontend that is not installed.
    """
    carried = {
        name: replace(transport, name=name, target=target)
        for transport in [plugins.get("tritonpy_transports", chosen, "transport") for chosen in transports]
        for name, target in transport.load().carries.items()
    }
    return lambda name: (carried.get(name) or plugins.get("tritonpy_frontends", name, "frontend")).load()
