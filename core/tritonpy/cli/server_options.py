"""Help texts for the keys of server.yaml that belong to the server itself."""

from __future__ import annotations

import msgspec

from tritonpy.cli.option_descriptions import describe_options
from tritonpy.cli.plugin_options import SECTIONS
from tritonpy.config.server import ServerConfig


def describe_server_options() -> str:
    """Return the server's own keys with type, default and meaning.

    Single keys come first, then sections.
    """
    single, sections = [], []
    for field in msgspec.structs.fields(ServerConfig):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            sections += [f"  {field.name}", *describe_options(msgspec.structs.fields(field.type))]
        elif field.name not in SECTIONS:
            single.append(field)
    return "\n".join(["Options of the server (keys of server.yaml):", *describe_options(single, "  "), *sections])
