"""The versions of the server and of the plugin API."""

from __future__ import annotations

from importlib.util import find_spec

SERVER_VERSION = "0.1.0"
"""The version in the server metadata."""
API_VERSION = (1, 0)
"""Major and minor version of the plugin API.

A plugin package may declare the version that it was written for in a module constant
TRITONPY_API_VERSION. At start-up, another major version or a higher minor version is rejected by
name.
"""


def is_compiled() -> bool:
    """Return whether the request path runs as machine code instead of in the interpreter."""
    spec = find_spec("tritonpy.runners.dispatcher")
    return spec is not None and not (spec.origin or "").endswith(".py")
