"""Descriptions of the keys of server.yaml, from its structs and the options of plugins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from tritonpy.config import ServerConfig, description
from tritonpy.plugins import PLUGIN_SECTIONS, PluginManager
from tritonpy_config.problem import child
from tritonpy_config.server.expectation import expectation, split_annotation
from tritonpy_types.errors import PluginError

_SECTION_TEXTS = {
    "frontends": "The protocols that the server speaks, by name.",
    "backends": "Options of backends, by name.",
    "observers": "Plugins that see every request, by name.",
    "repo_agents": "Options of repository agents, by name.",
    "plugins": "Which installed plugins are active.",
}


@dataclass(frozen=True, slots=True)
class ServerKey:
    """A key of server.yaml. `owner` is the distribution of the plugin that reads it, or ""."""

    path: str
    type_name: str
    text: str
    default: str
    owner: str = ""


def server_keys(manager: PluginManager) -> Iterator[ServerKey]:
    """Yield every key of the server itself, then those of the installed plugins."""
    yield from _keys(ServerConfig, "", "")
    for section, (hook, _) in PLUGIN_SECTIONS.items():
        for name, entry in sorted(manager.table(hook).items()):
            try:
                options = getattr(entry.load(), "Options", None)
            except PluginError:
                continue
            if options is not None:
                yield from _keys(options, f"{section}.{name}", entry.owner)


def _keys(kind: type[msgspec.Struct], prefix: str, owner: str) -> Iterator[ServerKey]:
    for field in msgspec.structs.fields(kind):
        path = child(prefix, field.encode_name)
        bare, _ = split_annotation(field.type)
        is_section = isinstance(bare, type) and issubclass(bare, msgspec.Struct)
        text = description(field.type) or _SECTION_TEXTS.get(path, "")
        if is_section and not text:
            text = (bare.__doc__ or "").strip().partition("\n")[0]
        default = "" if is_section else _default(field)
        yield ServerKey(path, expectation(field.type), text, default, owner)
        if is_section:
            yield from _keys(bare, path, owner)


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value: Any = field.default
    if value is msgspec.NODEFAULT:
        factory = field.default_factory
        value = factory() if callable(factory) else None
    return "" if value in ({}, [], None) else msgspec.json.encode(value).decode()
