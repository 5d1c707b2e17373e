"""Plugins: found by entry points, registered by hooks, imported at their first use.

Start at `manager`; its PACKAGES names the distributions that are not installed. The package may
import `hookspecs` and `api`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy.lazy_names import lazy_names

if TYPE_CHECKING:
    from tritonpy.installation import install_command
    from tritonpy.plugins.backends import Backends
    from tritonpy.plugins.manager import (
        PluginInfo,
        PluginManager,
        Registration,
        make_plugin_manager,
    )
    from tritonpy.plugins.options import (
        PLUGIN_SECTIONS,
        check_plugin_options,
        describe_plugin_options,
    )
    from tritonpy_config.options import NoOptions
    from tritonpy_config.server.option_descriptions import describe_options
    from tritonpy_types.errors import PluginError

__all__ = [
    "PLUGIN_SECTIONS",
    "BackendFolders",
    "Backends",
    "NoOptions",
    "PluginError",
    "PluginInfo",
    "PluginManager",
    "Registration",
    "check_plugin_options",
    "describe_options",
    "describe_plugin_options",
    "install_command",
    "make_plugin_manager",
]

__getattr__ = lazy_names(
    __name__,
    {
        "tritonpy_config.options": ("NoOptions",),
        "tritonpy_types.errors": ("PluginError",),
        "tritonpy.installation": ("install_command",),
        "tritonpy.plugins.backends": ("Backends",),
        "tritonpy_config.backend_folders": ("BackendFolders",),
        "tritonpy_config.server.option_descriptions": ("describe_options",),
        "tritonpy.plugins.options": (
            "PLUGIN_SECTIONS",
            "check_plugin_options",
            "describe_plugin_options",
        ),
        "tritonpy.plugins.manager": (
            "PluginInfo",
            "PluginManager",
            "Registration",
            "make_plugin_manager",
        ),
    },
)
