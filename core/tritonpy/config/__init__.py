"""Model configurations and server.yaml: parsing, completion, normalization, validation and output.

Plugins import the names below from here. The modules of the package import each other directly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy.lazy_names import lazy_names

if TYPE_CHECKING:
    from tritonpy.config.completion import merge_auto_complete
    from tritonpy.config.model_text import read_config_text
    from tritonpy.config.normalization import normalize
    from tritonpy.config.server import ServerConfig, decode_server_config
    from tritonpy.config.server.expectation import description
    from tritonpy.config.server.sections import DeviceSettings, parse_resource

__all__ = [
    "DeviceSettings",
    "ServerConfig",
    "decode_server_config",
    "description",
    "merge_auto_complete",
    "normalize",
    "parse_resource",
    "read_config_text",
]

__getattr__ = lazy_names(
    __name__,
    {
        "tritonpy.config.completion": ("merge_auto_complete",),
        "tritonpy.config.model_text": ("read_config_text",),
        "tritonpy.config.normalization": ("normalize",),
        "tritonpy.config.server": ("ServerConfig", "decode_server_config"),
        "tritonpy.config.server.expectation": ("description",),
        "tritonpy.config.server.sections": ("DeviceSettings", "parse_resource"),
    },
)
