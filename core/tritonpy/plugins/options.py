"""Validation of all plugins' options before the server starts, and their help texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import msgspec

from tritonpy.plugins.backends import Backends
from tritonpy.plugins.manager import PACKAGES, PluginManager, frontend_classes
from tritonpy_config.backend_folders import BackendFolders
from tritonpy_config.known_backends import package_of
from tritonpy_config.options import Options
from tritonpy_config.problem import ConfigProblem
from tritonpy_config.server import InvalidServerConfig, ServerConfig, decode_options
from tritonpy_config.server.option_descriptions import describe_options
from tritonpy_config.server.sections import DEFAULT_MODE
from tritonpy_types.errors import PluginError

LABELS = {"http": "HTTP", "grpc": "GRPC"}
PLUGIN_SECTIONS = {
    "frontends": ("tritonpy_frontends", "frontend"),
    "transport": ("tritonpy_transports", "transport"),
    "observers": ("tritonpy_observers", "observer"),
    "backends": ("tritonpy_backends", "backend"),
    "cache": ("tritonpy_caches", "response cache"),
    "auth": ("tritonpy_authenticators", "authenticator"),
    "sharing": ("tritonpy_sharings", "sharing policy"),
    "routers": ("tritonpy_routers", "router"),
    "operations": ("tritonpy_operations", "operation group"),
    "repo_agents": ("tritonpy_repo_agents", "repository agent"),
    "repository_options": ("tritonpy_repositories", "repository scheme"),
    "trace.modes": ("tritonpy_trace_sinks", "trace mode"),
}
"""Sections of server.yaml with plugin names as keys.

Values: the hook, and a description for error texts.
"""


class Listener(NamedTuple):
    """A port that a frontend uses."""

    label: str
    host: str
    port: int


def check_plugin_options(config: ServerConfig, manager: PluginManager) -> None:
    """Decode the options of every plugin in `config`.

    Raises InvalidServerConfig with all problems, including plugins that are not installed.
    """
    errors: list[InvalidServerConfig] = []
    listeners: list[Listener] = []
    installed_transports = [
        name for name in config.transport if name in manager.table("tritonpy_transports")
    ]
    class_of = frontend_classes(manager, installed_transports)
    in_plugins = manager.table("tritonpy_backend_folders")
    folders = BackendFolders.with_plugins(config.backend_directory, in_plugins)
    backends = Backends(manager, config.backends, {}, folders)
    for section, (hook, kind_name) in PLUGIN_SECTIONS.items():
        for name, raw in _configured(config, section, manager).items():
            path = f"{section}.{name}"
            is_backend = section == "backends"
            executor = backends.executor(name) if is_backend else name
            try:
                library = config.library(section, name)
                found, given = manager.find(hook, executor, kind_name, raw, library)
            except PluginError as error:
                errors.append(InvalidServerConfig([ConfigProblem(path, str(error))]))
                continue
            kind = class_of(name) if section == "frontends" else found
            try:
                options = (
                    backends.options(name)
                    if is_backend
                    else decode_options(kind.Options, given, path)
                )
            except InvalidServerConfig as error:
                errors.append(error)
                continue
            if section == "frontends" and hasattr(options, "port"):
                host = getattr(options, "host", "") or config.host
                listeners.append(Listener(LABELS.get(name, name), host, options.port))
    if errors:
        raise InvalidServerConfig.joined(errors)
    problems = [ConfigProblem("", text) for text in port_collisions(listeners)]
    if problems:
        raise InvalidServerConfig(problems)


def _configured(config: ServerConfig, section: str, manager: PluginManager) -> Mapping[str, Any]:
    if section == "frontends":
        return config.enabled_frontends(manager.table("tritonpy_frontends"))
    if section == "trace.modes":  # options of a known but unused mode are allowed
        mode, modes, hook = config.trace.mode, config.trace.modes, PLUGIN_SECTIONS[section][0]
        known = {*manager.table(hook), *PACKAGES[hook]}
        used = {mode} if mode != DEFAULT_MODE else set()
        return {
            name: modes.get(name, {})
            for name in [*modes, *(used - modes.keys())]
            if name == mode or name not in known
        }
    named: Mapping[str, Any] = getattr(config, section)
    if section == "backends":  # options of Triton's other backends are allowed
        installed = manager.table("tritonpy_backends")
        return {
            name: raw
            for name, raw in named.items()
            if name in installed or package_of(name) is None
        }
    return named


def port_collisions(listeners: Iterable[Listener]) -> list[str]:
    """Return one text, Triton's, for each pair with the same address and port.

    Port 0 means any free port and never collides.
    """
    return [
        f"The server cannot listen to {one.label} requests and {other.label} requests "
        f"at the same address and port {one.host}:{one.port}"
        for one, other in combinations(listeners, 2)
        if one.host == other.host and (one.port == other.port != 0 or one.host.startswith("unix:"))
    ]


def describe_plugin_options(manager: PluginManager) -> str:
    """Return the keys of server.yaml that belong to installed plugins.

    Each has its type, default and meaning.
    """
    parts: list[str] = []
    for section, (hook, _) in PLUGIN_SECTIONS.items():
        for name, entry in sorted(manager.table(hook).items()):
            options: type[Options] | None = getattr(entry.load(), "Options", None)
            fields = () if options is None else msgspec.structs.fields(options)
            if fields:
                parts += [
                    f"  {section}.{name}  ({entry.owner} {entry.version})",
                    *describe_options(fields),
                ]
    return "\n".join(
        ["Options of installed plugins (keys of server.yaml):", *(parts or ["  none"])]
    )
