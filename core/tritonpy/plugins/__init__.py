"""Plugins: found by entry points, registered by hooks, imported at their first use."""

from __future__ import annotations

from tritonpy.plugins.manager import PluginInfo, PluginManager, Registration, make_plugin_manager

__all__ = ["PluginInfo", "PluginManager", "Registration", "make_plugin_manager"]
