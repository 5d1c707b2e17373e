"""The server's own configuration: server.yaml and the options of plugins.

Start at `server_config`; `sections` has the parts, `option_decoder` the options of plugins. The
package may import `tritonpy.config`.
"""

from __future__ import annotations

from tritonpy.config.server.expectation import ByteSize
from tritonpy.config.server.invalid_server_config import InvalidServerConfig
from tritonpy.config.server.option_decoder import decode_options
from tritonpy.config.server.server_config import ServerConfig, decode_server_config

__all__ = [
    "ByteSize",
    "InvalidServerConfig",
    "ServerConfig",
    "decode_options",
    "decode_server_config",
]
