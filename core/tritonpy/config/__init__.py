"""Model configurations and server.yaml: parsing, completion, normalization, validation and output.

Plugins import the names below from here. The modules of the package import each other directly.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tritonpy.config.completion import merge_auto_complete
    from tritonpy.config.model_text import read_config_text
    from tritonpy.config.normalization import normalize
    from tritonpy.config.server.device_settings import DeviceSettings
    from tritonpy.config.server.expectation import description

__all__ = ["DeviceSettings", "description", "merge_auto_complete", "normalize", "read_config_text"]

_MODULES = {
    "DeviceSettings": "tritonpy.config.server.device_settings",
    "description": "tritonpy.config.server.expectation",
    "merge_auto_complete": "tritonpy.config.completion",
    "normalize": "tritonpy.config.normalization",
    "read_config_text": "tritonpy.config.model_text",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'tritonpy.config' has no attribute '{name}'")
