"""The options of plugins' classes: checked all at once before anything starts, and shown by the help."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import msgspec

from tritonpy.api.options import Options
from tritonpy.cli.described_options import described
from tritonpy.config.known_backends import package_of
from tritonpy.config.problem import ConfigProblem
from tritonpy.config.server import InvalidServerConfig, ServerConfig, decode_options
from tritonpy.config.server.trace_config import DEFAULT_MODE
from tritonpy.errors import PluginError
from tritonpy.plugins import PluginManager
from tritonpy.plugins.backends import Backends
from tritonpy.plugins.carrying import frontend_classes
from tritonpy.plugins.known import PACKAGES
from tritonpy.plugins.python_based import PYTHON, BackendFolders

LABELS = {"http": "HTTP", "grpc": "GRPC"}
SECTIONS = {
    "frontends": ("tritonpy_frontends", "frontend"),
    "transport": ("tritonpy_transports", "transport"),
    "observers": ("tritonpy_observers", "observer"),
    "backends": ("tritonpy_backends", "backend"),
    "cache": ("tritonpy_caches", "response cache"),
    "auth": ("tritonpy_authenticators", "authenticator"),
    "sharing": ("tritonpy_sharings", "way of sharing"),
    "routers": ("tritonpy_routers", "router"),
    "operations": ("tritonpy_operations", "group of operations"),
    "repo_agents": ("tritonpy_repo_agents", "repository agent"),
    "repository_options": ("tritonpy_repositories", "repository scheme"),
    "trace.modes": ("tritonpy_trace_sinks", "trace mode"),
}
"""Sections of server.yaml whose keys are names that plugins registered: the hook, and what is looked for in words."""


class Listener(NamedTuple):
    """A port that a frontend wants."""

    label: str
    host: str
    port: int


def check_plugin_options(config: ServerConfig, manager: PluginManager) -> None:
    """Decode the options of every plugin that `config` names.

    Raises InvalidServerConfig with the problems of all of them, those that are not installed among them.
    """
    errors: list[InvalidServerConfig] = []
    listeners: list[Listener] = []
    installed_transports = [name for name in config.transport if name in manager.table("tritonpy_transports")]
    class_of = frontend_classes(manager, installed_transports)
    backends = Backends(manager, config.backends, {}, BackendFolders(config.backend_directory))
    for section, (hook, what) in SECTIONS.items():
        for name, raw in _named(config, section, manager).items():
            path = f"{section}.{name}"
            is_backend = section == "backends"
            in_folder = is_backend and backends.folder(name) is not None
            try:
                registered = manager.get(hook, PYTHON if in_folder else name, what)
            except PluginError as error:
                errors.append(InvalidServerConfig([ConfigProblem(path, str(error))]))
                continue
            kind = class_of(name) if section == "frontends" else registered.load()
            try:
                options = backends.options(name) if is_backend else decode_options(kind.Options, raw, path)
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


def _named(config: ServerConfig, section: str, manager: PluginManager) -> Mapping[str, Any]:
    if section == "frontends":
        return config.enabled_frontends(manager.table("tritonpy_frontends"))
    if section == "trace.modes":  # options may be kept for a known mode that is not used
        mode, modes, hook = config.trace.mode, config.trace.modes, SECTIONS[section][0]
        known = {*manager.table(hook), *PACKAGES[hook]}
        used = {mode} if mode != DEFAULT_MODE else set()
        return {
            name: modes.get(name, {}) for name in [*modes, *(used - modes.keys())] if name == mode or name not in known
        }
    named: Mapping[str, Any] = getattr(config, section)
    if section == "backends":  # options may be kept for one of Triton's backends that no model here needs
        installed = manager.table("tritonpy_backends")
        return {name: raw for name, raw in named.items() if name in installed or package_of(name) is None}
    return named


def port_collisions(listeners: Iterable[Listener]) -> list[str]:
    """Return one text, Triton's, for each pair that wants the same address and port; port 0 is any free one."""
    return [
        f"The server cannot listen to {one.label} requests and {other.label} requests "
        f"at the same address and port {one.host}:{one.port}"
        for one, other in combinations(listeners, 2)
        if one.host == other.host and (one.port == other.port != 0 or one.host.startswith("unix:"))
    ]


def describe_plugin_options(manager: PluginManager) -> str:
    """Return the keys of server.yaml that installed plugins bring, with type, default and meaning."""
    parts: list[str] = []
    for section, (hook, _) in SECTIONS.items():
        for name, entry in sorted(manager.table(hook).items()):
            options: type[Options] | None = getattr(entry.load(), "Options", None)
            fields = () if options is None else msgspec.structs.fields(options)
            if fields:
                parts += [f"  {section}.{name}  ({entry.owner} {entry.version})", *described(fields)]
    return "\n".join(["Options of the installed plugins, keys of server.yaml:", *(parts or ["  none"])])
