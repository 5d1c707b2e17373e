"""The server's own configuration: server.yaml and the options of plugins.

Start at `server_config`; `sections` has the parts, `option_decoder` the options of plugins. The
package may import the rest of `tritonpy_config`.
"""

from __future__ import annotations

from tritonpy_config.server.expectation import ByteSize
from tritonpy_config.server.invalid_server_config import InvalidServerConfig
from tritonpy_config.server.option_decoder import decode_options
from tritonpy_config.server.server_config import ServerConfig, decode_server_config

__all__ = [
    "ByteSize",
    "InvalidServerConfig",
    "ServerConfig",
    "decode_options",
    "decode_server_config",
]
