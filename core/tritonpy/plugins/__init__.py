"""Plugins: found by entry points, registered by hooks, imported at their first use.

Start at `manager`; its PACKAGES names the distributions that are not installed. The package may
import `hookspecs` and `api`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy.lazy_names import lazy_names

if TYPE_CHECKING:
    from tritonpy.api.options import NoOptions
    from tritonpy.installation import install_command
    from tritonpy.plugins.manager import (
        PluginInfo,
        PluginManager,
        Registration,
        make_plugin_manager,
    )
    from tritonpy_types.errors import PluginError

__all__ = [
    "NoOptions",
    "PluginError",
    "PluginInfo",
    "PluginManager",
    "Registration",
    "install_command",
    "make_plugin_manager",
]

__getattr__ = lazy_names(
    __name__,
    {
        "tritonpy.api.options": ("NoOptions",),
        "tritonpy_types.errors": ("PluginError",),
        "tritonpy.installation": ("install_command",),
        "tritonpy.plugins.manager": (
            "PluginInfo",
            "PluginManager",
            "Registration",
            "make_plugin_manager",
        ),
    },
)
