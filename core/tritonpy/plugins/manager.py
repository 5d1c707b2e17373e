"""The plugin manager: finds plugins, rejects broken ones, and collects their registrations."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import pluggy

from tritonpy import hookspecs
from tritonpy.api.device import CUDA_PACKAGE
from tritonpy.installation import install_command
from tritonpy.version import API_VERSION
from tritonpy_config import known_backends
from tritonpy_types.errors import PluginError

GROUP = "tritonpy"


PACKAGES = {
    "tritonpy_schedulers": {
        "dynamic": "tritonpy-batching-dynamic",
        "sequence": "tritonpy-batching-sequence",
        "ensemble": "tritonpy-ensemble",
    },
    "tritonpy_runners": {"process": "tritonpy-workers"},
    "tritonpy_rate_limiters": {"execution_count": "tritonpy-rate-limiter"},
    "tritonpy_residency_policies": {"lru": "tritonpy-residency"},
    "tritonpy_repositories": {
        "s3": "tritonpy-repo-cloud[s3]",
        "gs": "tritonpy-repo-cloud[gs]",
        "as": "tritonpy-repo-cloud[as]",
    },
    "tritonpy_frontends": {
        "http": "tritonpy-frontend-http",
        "grpc": "tritonpy-frontend-grpc",
        "metrics": "tritonpy-metrics-prometheus",
        "openai": "tritonpy-frontend-openai",
        "sagemaker": "tritonpy-frontend-sagemaker",
        "vertex": "tritonpy-frontend-vertex",
    },
    "tritonpy_frontend_hosts": {"processes": "tritonpy-frontend-processes"},
    "tritonpy_transports": {"grpcio": "tritonpy-frontend-grpc"},
    "tritonpy_authenticators": {"api_keys": "tritonpy-auth-api-keys", "jwt": "tritonpy-auth-jwt"},
    "tritonpy_batch_policies": {
        "preferred": "tritonpy-batching-dynamic",
        "slo": "tritonpy-batching-slo",
        "c": "tritonpy-backend-c",
    },
    "tritonpy_sharings": {"fair": "tritonpy-queueing-fair"},
    "tritonpy_routers": {"traffic": "tritonpy-traffic"},
    "tritonpy_devices": {"cuda": CUDA_PACKAGE},
    "tritonpy_trace_sinks": {"opentelemetry": "tritonpy-trace-otel"},
    "tritonpy_caches": {
        "local": "tritonpy-cache-local",
        "redis": "tritonpy-cache-redis",
        "c": "tritonpy-backend-c",
    },
    "tritonpy_repo_agents": {
        "c": "tritonpy-backend-c",
        "checksum": "tritonpy-agent-checksum",
        "sealed": "tritonpy-agent-sealed",
    },
    "tritonpy_commands": {
        "api-key": "tritonpy-auth-api-keys",
        "analyze": "tritonpy-analyzer",
        "bench": "tritonpy-bench",
        "chat": "tritonpy-chat",
        "completion": "tritonpy-doctor",
        "debug": "tritonpy-backend-python",
        "diff": "tritonpy-lint",
        "doctor": "tritonpy-doctor",
        "explain": "tritonpy-lint",
        "healthcheck": "tritonpy-serve",
        "init": "tritonpy-lint",
        "lint": "tritonpy-lint",
        "seal": "tritonpy-agent-sealed",
        "serve": "tritonpy-serve",
    },
}


@dataclass(frozen=True, slots=True)
class Registration:
    """A registered name.

    `target` is a class, "module:Class", which is imported when needed, or the path of a folder.
    `owner` is the distribution.
    """

    hook: str
    name: str
    target: Any
    owner: str
    version: str

    def load(self) -> Any:
        """Return the class. Raises PluginError that names the owner if it cannot be imported."""
        if not isinstance(self.target, str):
            return self.target
        name, _, attribute = self.target.partition(":")
        try:
            module = importlib.import_module(name)
        except Exception as error:
            raise PluginError(
                f"plugin '{self.name}' of {self.owner} cannot be imported: "
                f"{type(error).__name__}: {error}. "
                f"Reinstall it ({install_command(self.owner, reinstall=True)}) or disable it "
                "under 'plugins: disable:'."
            ) from error
        if not hasattr(module, attribute):
            raise PluginError(
                f"plugin '{self.name}' of {self.owner} names '{self.target}', which does not exist"
            )
        return getattr(module, attribute)


def package_of(hook: str, name: str) -> str | None:
    """Return the distribution that provides `name`, or None if it is unknown."""
    if hook == "tritonpy_backends":
        return known_backends.package_of(name)
    return PACKAGES.get(hook, {}).get(name)


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """An installed plugin: its entry point, its distribution, and its registered names by hook."""

    name: str
    distribution: str
    version: str
    hooks: Mapping[str, list[str]]


class PluginManager:
    """The plugins of one server. Tests and embedding applications create their own managers."""

    def __init__(self) -> None:
        self._pluggy = pluggy.PluginManager(hookspecs.PROJECT)
        self._pluggy.add_hookspecs(hookspecs)
        self._origins: dict[Any, tuple[str, str, str]] = {}
        self._tables: dict[str, Mapping[str, Registration]] = {}

    @property
    def hook(self) -> Any:
        """The event hooks: `manager.hook.tritonpy_server_started(engine=engine)`."""
        return self._pluggy.hook

    def discover(self, disable: Collection[str] = (), only: str | None = None) -> None:
        """Load every installed plugin whose entry point and distribution are not in `disable`.

        `only` is the name of the single entry point to load.

        Raises PluginError that names the distribution, if a plugin cannot be imported or needs
        another API version.
        """
        known = set()
        found = entry_points(group=GROUP)
        selected = found if only is None else found.select(name=only)
        for entry in sorted(selected, key=lambda entry: entry.name):
            distribution = entry.dist.name if entry.dist else entry.value
            known |= {entry.name, distribution}
            if entry.name not in disable and distribution not in disable:
                self.register(
                    _import(entry, distribution),
                    entry.name,
                    distribution,
                    entry.dist.version if entry.dist else "",
                )
        for name in disable:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = (
                    f", did you mean '{near[0]}'?"
                    if near
                    else f", installed are: {', '.join(sorted(known))}"
                )
                raise PluginError(f"plugins: disable: no plugin '{name}' is installed{hint}")
        self.check()

    def register(self, plugin: Any, name: str, distribution: str = "", version: str = "") -> None:
        """Add `plugin`, a module or object with hook implementations."""
        distribution = distribution or name
        _check_api_version(plugin, distribution)
        other = next((origin for origin in self._origins.values() if origin[0] == name), None)
        if other is not None:
            raise PluginError(
                f"two plugins have the name '{name}', from {other[1]} and from {distribution}; "
                "uninstall one of them"
            )
        try:
            self._pluggy.register(plugin, name)
        except pluggy.PluginValidationError as error:
            raise PluginError(
                f"{distribution} implements a hook with wrong arguments: {error}"
            ) from error
        self._origins[id(plugin)] = (name, distribution, version)
        self._tables.clear()

    def check(self) -> None:
        """Raise PluginError for implementations of unknown hooks, and for duplicate names."""
        try:
            self._pluggy.check_pending()
        except pluggy.PluginValidationError as error:
            raise PluginError(_misspelled(error, self._origins)) from error
        for hook in hookspecs.registration_hooks():
            self.table(hook)

    def table(self, hook: str) -> Mapping[str, Registration]:
        """Return the registrations of all plugins under `hook`, by name.

        Raises PluginError if two plugins register the same name.
        """
        if hook not in self._tables:
            self._tables[hook] = self._collect(hook)
        return self._tables[hook]

    def get(self, hook: str, name: str, what: str) -> Registration:
        """Return the registration of `name`. `what` describes the kind for error texts.

        Raises PluginError that names the package to install, or the closest name.
        """
        table = self.table(hook)
        if name in table:
            return table[name]
        package = package_of(hook, name)
        if package is not None:
            raise PluginError(f"no plugin provides {what} '{name}': {install_command(package)}")
        near = difflib.get_close_matches(name, table, 1)
        hint = (
            f"did you mean '{near[0]}'?"
            if near
            else f"installed are: {', '.join(sorted(table)) or 'none'}"
        )
        raise PluginError(f"no plugin provides {what} '{name}', {hint}")

    def find(
        self, hook: str, name: str, what: str, raw: Mapping[str, Any], library: Path | None
    ) -> tuple[Any, Mapping[str, Any]]:
        """Return the class of `name` and its options `raw`.

        Without a plugin, `library` of the C interface serves: the class is the one that runs it.
        """
        if library is None or name in self.table(hook):
            return self.get(hook, name, what).load(), raw
        return self.get(hook, "c", what).load(), {**raw, "library": str(library)}

    def plugins(self) -> list[PluginInfo]:
        """Return the registered plugins with the names that each one provides."""
        result = []
        for plugin in self._pluggy.get_plugins():
            name, distribution, version = self._origins[id(plugin)]
            hooks: dict[str, list[str]] = {}
            for caller in self._pluggy.get_hookcallers(plugin) or []:
                hooks[caller.name] = [
                    entry.name for entry in self._registrations(caller.name, plugin)
                ]
            result.append(PluginInfo(name, distribution, version, hooks))
        return sorted(result, key=lambda info: (info.distribution, info.name))

    def _registrations(self, hook: str, plugin: Any) -> list[Registration]:
        if hook not in hookspecs.registration_hooks():
            return []
        _, distribution, version = self._origins[id(plugin)]
        return [
            Registration(hook, name, target, distribution, version)
            for implementation in getattr(self._pluggy.hook, hook).get_hookimpls()
            if implementation.plugin is plugin
            for name, target in _provided(implementation, hook, distribution).items()
        ]

    def _collect(self, hook: str) -> Mapping[str, Registration]:
        table: dict[str, Registration] = {}
        for implementation in getattr(self._pluggy.hook, hook).get_hookimpls():
            for entry in self._registrations(hook, implementation.plugin):
                if entry.name in table:
                    raise PluginError(
                        f"{hook}: the name '{entry.name}' is registered by "
                        f"{table[entry.name].owner} and by {entry.owner}; "
                        "uninstall one, or disable it under 'plugins: disable:'"
                    )
                table[entry.name] = entry
        return table


def make_plugin_manager(
    discover: bool = True, disable: Collection[str] = (), only: str | None = None
) -> PluginManager:
    """Return a plugin manager with all plugins, or with the one of the entry point `only`.

    Tests pass `discover=False` and register plugins themselves.
    """
    manager = PluginManager()
    if os.environ.get("TRITONPY_TRACE_HOOKS") == "1":
        manager._pluggy.trace.root.setwriter(sys.stderr.write)
        manager._pluggy.enable_tracing()
    if discover:
        manager.discover(disable, only)
    return manager


def _import(entry: EntryPoint, distribution: str) -> Any:
    try:
        return entry.load()
    except Exception as error:
        raise PluginError(
            f"plugin '{entry.name}' of {distribution} cannot be imported: "
            f"{type(error).__name__}: {error}. "
            f"Repair it, or start without it: 'plugins: {{disable: [{entry.name}]}}' in "
            "server.yaml."
        ) from error


def _provided(
    implementation: pluggy.HookImpl, hook: str, distribution: str
) -> Mapping[str, type | str]:
    provided = implementation.function()
    if not isinstance(provided, Mapping):
        raise PluginError(
            f"{distribution}: {hook} must return a mapping of names to classes, "
            f"it returned {type(provided).__name__}"
        )
    return provided


def _check_api_version(plugin: Any, distribution: str) -> None:
    built_for = getattr(plugin, "TRITONPY_API_VERSION", API_VERSION)
    if built_for[0] != API_VERSION[0] or built_for[1] > API_VERSION[1]:
        required, have = (".".join(map(str, version)) for version in (built_for, API_VERSION))
        raise PluginError(
            f"{distribution} requires version {required} of the plugin API, "
            f"this server has {have}: "
            f"install a compatible version of {distribution}"
        )


def _misspelled(
    error: pluggy.PluginValidationError, origins: Mapping[Any, tuple[str, str, str]]
) -> str:
    names = [name for name in vars(hookspecs) if name.startswith("tritonpy_")]
    owner = origins[id(error.plugin)][1]
    wrong = [
        name for name in dir(error.plugin) if name.startswith("tritonpy_") and name not in names
    ]
    hints = []
    for name in wrong:
        near = difflib.get_close_matches(name, names, 1)
        hints.append(f"'{name}'" + (f" (did you mean '{near[0]}'?)" if near else ""))
    return f"{owner} implements a hook that does not exist: {', '.join(hints) or error}"


def frontend_classes(plugins: PluginManager, transports: Iterable[str]) -> Callable[[str], Any]:
    """Return a function that finds the class of a frontend by its name.

    `transports`, at most one, may carry the frontend. Raises PluginError for a transport that is
    not installed. The returned function raises it for a frontend that is not installed.
    """
    carried = {
        name: replace(transport, name=name, target=target)
        for transport in [
            plugins.get("tritonpy_transports", chosen, "transport") for chosen in transports
        ]
        for name, target in transport.load().carries.items()
    }
    return lambda name: (
        carried.get(name) or plugins.get("tritonpy_frontends", name, "frontend")
    ).load()
