"""The keys of server.yaml that are the server's own, for the help."""

from __future__ import annotations

import msgspec

from tritonpy.cli.described_options import described
from tritonpy.cli.plugin_options import SECTIONS
from tritonpy.config.server import ServerConfig


def describe_own_options() -> str:
    """Return the keys that no plugin brings, with type, default and meaning: single ones first, then each section."""
    single, sections = [], []
    for field in msgspec.structs.fields(ServerConfig):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            sections += [f"  {field.name}", *described(msgspec.structs.fields(field.type))]
        elif field.name not in SECTIONS:
            single.append(field)
    return "\n".join(["Options of the server itself, keys of server.yaml:", *described(single, "  "), *sections])
