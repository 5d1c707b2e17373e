"""The base classes of plugin options."""

from __future__ import annotations

import msgspec

# Major, minor. A plugin package may declare the version that it was written for in a module
# constant TRITONPY_API_VERSION. At start-up, another major version or a higher minor version is
# rejected by name.
API_VERSION = (1, 0)

# The version in the server metadata.
SERVER_VERSION = "0.1.0"


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Base of the options of a plugin's class, decoded from its keys in `server.yaml`.

    Fields have underscores in Python; the file may use `max_size` or `max-size`. Give each field a
    type, a default and a description. Write the description as `Annotated[int,
    msgspec.Meta(description="…")]`. `tritonpy serve --help-all` prints it.
    """


class NoOptions(Options, frozen=True):
    """Options of a class that has none."""
