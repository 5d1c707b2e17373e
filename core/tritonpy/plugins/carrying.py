"""Which class serves a frontend: its own, or that of the transport that carries it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from tritonpy.plugins.manager import PluginManager


def frontend_classes(plugins: PluginManager, transports: Iterable[str]) -> Callable[[str], Any]:
    """Return what finds the class of a frontend by its name, where `transports`, one at most, may carry it.

    Raises PluginError for a transport that is not installed, and what is returned for a frontend.
    """
    carried = {
        name: replace(transport, name=name, target=target)
        for transport in [plugins.get("tritonpy_transports", chosen, "transport") for chosen in transports]
        for name, target in transport.load().carries.items()
    }
    return lambda name: (carried.get(name) or plugins.get("tritonpy_frontends", name, "frontend")).load()
