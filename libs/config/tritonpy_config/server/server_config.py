"""The configuration of a server: the contents of server.yaml as frozen data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from tritonpy_config.problem import ConfigProblem
from tritonpy_config.server.expectation import ByteSize
from tritonpy_config.server.invalid_server_config import InvalidServerConfig
from tritonpy_config.server.log_settings import LogSettings
from tritonpy_config.server.option_decoder import decode_options
from tritonpy_config.server.relative_paths import DEFAULT_REPOSITORY
from tritonpy_config.server.sections import (
    DeviceSettings,
    HostPolicySettings,
    LatencySettings,
    MemorySettings,
    RateLimitSettings,
    TraceConfig,
    device_problems,
    memory_problems,
    parse_cores,
    parse_quantiles,
    parse_resource,
)

RawOptions = dict[str, Any]
DEFAULT_FRONTENDS = ("http", "grpc", "metrics")
"""Enabled by default if their plugins are installed."""
NO_TRANSPORT = "none"
"""The transport name for frontends that listen themselves."""
REMOVED_TRANSPORTS = {
    "envoy": "the transport 'envoy' was removed; put an Envoy proxy in front of the server instead"
}
DEFAULT_BACKEND_DIRECTORY = "/opt/tritonserver/backends"


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a server's configuration."""


class RepositorySettings(_Section, frozen=True):
    """One model repository; the scheme of `url` selects the plugin, no scheme is a local folder.

    `options` are the plugin's options for this repository. They override `repository_options` of
    the scheme.
    """

    url: Annotated[str, Meta(min_length=1)]
    options: RawOptions = {}


class ControlSettings(_Section, frozen=True):
    """Which models are loaded and when."""

    mode: Annotated[
        Literal["none", "explicit", "poll"],
        Meta(
            description=(
                "none: load all at start; explicit: on request; poll: follow the repositories."
            )
        ),
    ] = "none"
    interval_s: Annotated[
        float, Meta(ge=0, description="Seconds between two polls of the repositories (mode poll).")
    ] = 15
    load: Annotated[
        list[str],
        Meta(description='Models to load at start (mode explicit); "*" alone is all of them.'),
    ] = []
    threads: Annotated[
        int,
        Meta(ge=1, description="How many models load at the same time at startup and in a poll."),
    ] = 4
    load_timeout_s: Annotated[
        float,
        Meta(
            ge=0,
            description=(
                "A load that takes longer fails; a model in a process is killed (0: no limit)."
            ),
        ),
    ] = 0.0
    retries: Annotated[int, Meta(ge=0, description="How often a failed load is retried.")] = 0


class AccessSettings(_Section, frozen=True):
    """Endpoints without authentication; without `auth` all endpoints are open."""

    open: Annotated[
        frozenset[Literal["health", "metrics"]],
        Meta(
            description=(
                "Endpoints without credentials: health (liveness and readiness) and metrics."
            )
        ),
    ] = frozenset({"health"})


class PluginSettings(_Section, frozen=True):
    """Which installed plugins are active."""

    disable: Annotated[
        list[str], Meta(description="Entry points or distributions that are not loaded.")
    ] = []


class LintSettings(_Section, frozen=True):
    """Which findings `tritonpy lint` reports; the server itself does not read it."""

    select: Annotated[
        list[str], Meta(description="Codes to report, or their beginnings; empty: all.")
    ] = []
    ignore: Annotated[list[str], Meta(description="Codes to leave out, or their beginnings.")] = []


class ServerConfig(_Section, frozen=True):
    """The complete configuration; every field has a default, so that an empty one serves ./models.

    The values under `frontends`, `transport`, `cache`, `observers`, `auth`, `routers`,
    `operations`, `backends`, `repo_agents` and `repository_options` are raw. The class that a
    plugin registered under the key defines their options. Decode them with `decode_options`.
    """

    repositories: Annotated[
        list[RepositorySettings], Meta(min_length=1, description="Where the models are.")
    ] = msgspec.field(default_factory=lambda: [RepositorySettings(DEFAULT_REPOSITORY)])
    control: ControlSettings = ControlSettings()
    host: Annotated[
        str,
        Meta(
            min_length=1,
            description="Bind address of every frontend; 0.0.0.0 opens it to the network.",
        ),
    ] = "127.0.0.1"
    id: Annotated[str, Meta(description="The name in the server metadata.")] = "triton"
    exit_on_error: Annotated[
        bool,
        Meta(description="Exit if a model fails to load at start, or a repository cannot be read."),
    ] = True
    strict_readiness: Annotated[
        bool, Meta(description="The server is ready only if every model is.")
    ] = True
    exit_timeout_s: Annotated[
        float, Meta(ge=0, description="Seconds to wait for requests in flight on exit.")
    ] = 30
    single_port: Annotated[
        Annotated[int, Meta(ge=0, le=65535)] | None,
        Meta(
            description=(
                "Serve HTTP and gRPC on this port instead of separate ports. 0: any free port."
            )
        ),
    ] = None
    frontend_processes: Annotated[
        int,
        Meta(
            ge=0,
            le=1024,
            description=(
                "Processes that serve HTTP and gRPC; 0: the process that runs the models does."
            ),
        ),
    ] = 0
    allow_client_shm: Annotated[
        bool, Meta(description="Let clients register shared memory for inputs and outputs.")
    ] = False
    disable_auto_complete: Annotated[bool, Meta(description="Use config.pbtxt unchanged.")] = False
    model_config_name: Annotated[
        str,
        Meta(pattern=r"^[^\s/]*$", description="Read configs/NAME.pbtxt of a model if it exists."),
    ] = ""
    model_namespacing: Annotated[
        bool,
        Meta(
            description=(
                "Allow models of the same name in several repositories; an ensemble prefers "
                "those of its own."
            )
        ),
    ] = False
    frontends: dict[str, RawOptions | bool] = {}
    transport: Annotated[
        dict[str, RawOptions],
        Meta(
            description=(
                "The transport that carries the frontends instead of their own listeners, "
                "at most one."
            )
        ),
    ] = {}
    cache: Annotated[
        dict[str, RawOptions], Meta(description="The response cache, at most one.")
    ] = {}
    observers: dict[str, RawOptions] = {}
    auth: Annotated[
        dict[str, RawOptions], Meta(description="Authenticators, called in this order.")
    ] = {}
    access: AccessSettings = AccessSettings()
    sharing: Annotated[
        dict[str, RawOptions],
        Meta(description="How principals share the server, at most one plugin."),
    ] = {}
    routers: Annotated[
        dict[str, RawOptions],
        Meta(description="Routers of requests, in this order."),
    ] = {}
    operations: Annotated[
        dict[str, RawOptions], Meta(description="Groups of management operations to offer.")
    ] = {}
    rate_limit: RateLimitSettings = RateLimitSettings()
    devices: DeviceSettings = DeviceSettings()
    memory: MemorySettings = MemorySettings()
    request_memory: Annotated[
        ByteSize,
        Meta(
            ge=0,
            description=(
                "Memory of requests and unsent responses in frontends; 0: "
                "a quarter of the memory limit."
            ),
        ),
    ] = 0
    host_policies: Annotated[
        dict[str, HostPolicySettings],
        Meta(description="Cores and NUMA nodes of instances, by the name of their policy."),
    ] = {}
    backends: dict[str, RawOptions] = {}
    backend_defaults: Annotated[
        RawOptions, Meta(description="Options for every backend that supports them.")
    ] = {}
    backend_directory: Annotated[
        str,
        Meta(
            min_length=1,
            description=(
                "Folder of Python-based backends: NAME/model.py serves models with backend NAME."
            ),
        ),
    ] = DEFAULT_BACKEND_DIRECTORY
    repo_agents: dict[str, RawOptions] = {}
    repo_agent_directory: Annotated[
        str,
        Meta(
            min_length=1,
            description="Folder of agents in C: NAME/libtritonrepoagent_NAME.so is agent NAME.",
        ),
    ] = "/opt/tritonserver/repoagents"
    cache_directory: Annotated[
        str,
        Meta(
            min_length=1,
            description="Folder of caches in C: NAME/libtritoncache_NAME.so is cache NAME.",
        ),
    ] = "/opt/tritonserver/caches"
    required_repo_agents: Annotated[
        list[str],
        Meta(
            description=(
                "Repository agents that every model's configuration must name; "
                "others are not loaded."
            )
        ),
    ] = []
    repository_options: Annotated[
        dict[str, RawOptions], Meta(description="Options of repositories by URL scheme.")
    ] = {}
    plugins: PluginSettings = PluginSettings()
    logging: LogSettings = LogSettings()
    trace: TraceConfig = TraceConfig()
    latencies: LatencySettings = LatencySettings()
    lint: LintSettings = LintSettings()

    def library(self, section: str, name: str) -> Path | None:
        """Return the library in C of a cache or repository agent, or None if there is none."""
        folders = {
            "cache": (self.cache_directory, "libtritoncache_"),
            "repo_agents": (self.repo_agent_directory, "libtritonrepoagent_"),
        }
        if section not in folders or "/" in name:
            return None
        folder, prefix = folders[section]
        path = Path(folder) / name / f"{prefix}{name}.so"
        return path if path.is_file() else None

    def enabled_frontends(self, installed: Collection[str]) -> dict[str, RawOptions]:
        """Return the raw options of each frontend to start: the configured and the default ones.

        Default frontends start only if they are `installed`.
        """
        found = {name: True for name in DEFAULT_FRONTENDS if name in installed} | self.frontends
        return {
            name: {} if raw is True else raw
            for name, raw in found.items()
            if not isinstance(raw, bool) or raw
        }


def decode_server_config(raw: object) -> ServerConfig:
    """Return the configuration for `raw`, the plain data of server.yaml.

    `frontends: {http: }` and `{http: true}` mean no options, `{http: false}` disables the frontend.
    `transport: NAME` means no options, too. Raises InvalidServerConfig with every problem.
    """
    config = decode_options(ServerConfig, _with_named_transport(_with_empty_frontends(raw)), "")
    problems = _contradictions(config)
    if problems:
        raise InvalidServerConfig(problems)
    return config


def _with_empty_frontends(raw: object) -> object:
    frontends = raw.get("frontends") if isinstance(raw, Mapping) else None
    if not isinstance(raw, Mapping) or not isinstance(frontends, Mapping):
        return raw
    return {
        **raw,
        "frontends": {name: True if value is None else value for name, value in frontends.items()},
    }


def _with_named_transport(raw: object) -> object:
    name = raw.get("transport") if isinstance(raw, Mapping) else None
    if not isinstance(raw, Mapping) or not isinstance(name, str):
        return raw
    return {**raw, "transport": {} if name == NO_TRANSPORT else {name: {}}}


def _contradictions(config: ServerConfig) -> list[ConfigProblem]:
    problems = []
    control = config.control
    if len(config.cache) > 1:
        text = "found multiple cache configurations, but only a single cache is currently supported"
        problems.append(ConfigProblem("cache", text))
    if len(config.transport) > 1:
        problems.append(ConfigProblem("transport", "only one transport is allowed"))
    problems += [
        ConfigProblem(f"transport.{name}", text)
        for name, text in REMOVED_TRANSPORTS.items()
        if name in config.transport
    ]
    if config.single_port is not None and config.frontend_processes:
        problems.append(
            ConfigProblem(
                "single_port", "cannot be combined with frontend_processes; remove one of them"
            )
        )
    if config.single_port is not None and config.transport:
        name = next(iter(config.transport))
        problems.append(
            ConfigProblem(
                "single_port", f"needs the built-in HTTP/2 server; remove the transport '{name}'"
            )
        )
    if len(config.sharing) > 1:
        problems.append(ConfigProblem("sharing", "only one sharing plugin is allowed"))
    if control.load not in ([], ["*"]) and control.mode != "explicit":
        problems.append(
            ConfigProblem(
                "control.load",
                f"mode '{control.mode}' loads every model; set control.mode to explicit",
            )
        )
    if "*" in control.load and len(control.load) > 1:
        text = "Wildcard model name '*' must be the ONLY startup model if specified at all."
        problems.append(ConfigProblem("control.load", text))
    if control.mode == "poll" and control.interval_s == 0:
        problems.append(
            ConfigProblem("control.interval_s", "mode 'poll' needs more than 0 seconds")
        )
    problems += device_problems(config.devices)
    problems += memory_problems(config.memory)
    problems += _each_parsed(parse_quantiles, {"latencies.quantiles": config.latencies.quantiles})
    problems += _each_parsed(
        parse_resource, {f"rate_limit.resources.{key}": key for key in config.rate_limit.resources}
    )
    cores = {
        f"host_policies.{name}.cpu_cores": policy.cpu_cores
        for name, policy in config.host_policies.items()
    }
    problems += _each_parsed(parse_cores, {path: text for path, text in cores.items() if text})
    return problems


def _each_parsed(
    parse: Callable[[str], object], texts: Mapping[str, str]
) -> Iterator[ConfigProblem]:
    """Yield a problem for each of `texts` that `parse` rejects; the keys are their paths."""
    for path, text in texts.items():
        try:
            parse(text)
        except ValueError as error:
            yield ConfigProblem(path, str(error))
