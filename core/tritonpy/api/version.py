"""The versions of the plugin interface and of the server."""

from __future__ import annotations

# Major, minor. A plugin package may declare the version that it was written for in a module
# constant TRITONPY_API_VERSION. At start-up, another major version or a higher minor version is
# rejected by name.
API_VERSION = (1, 0)

# The version in the server metadata.
SERVER_VERSION = "0.1.0"
