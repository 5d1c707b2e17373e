"""The version of the plugin interface."""

from __future__ import annotations

# Major, minor. A plugin package may say which one it was written for in a module constant TRITONPY_API_VERSION; another
# major version is refused by name at start-up, a higher minor one too.
API_VERSION = (1, 0)

# What server metadata shows.
SERVER_VERSION = "0.1.0"
