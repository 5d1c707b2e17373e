"""What a server is made of: the content of server.yaml as frozen data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from tritonpy.config.problem import ConfigProblem
from tritonpy.config.server.byte_size import ByteSize
from tritonpy.config.server.decode import decode_options
from tritonpy.config.server.device_settings import DeviceSettings, device_problems
from tritonpy.config.server.host_policy import HostPolicySettings, parse_cores
from tritonpy.config.server.invalid import InvalidServerConfig
from tritonpy.config.server.latency_settings import LatencySettings, parse_quantiles
from tritonpy.config.server.memory_settings import MemorySettings, memory_problems
from tritonpy.config.server.rate_limit_settings import RateLimitSettings, parse_resource
from tritonpy.config.server.relative_paths import DEFAULT_REPOSITORY
from tritonpy.config.server.trace_config import TraceConfig
from tritonpy.logs import LogSettings

RawOptions = dict[str, Any]
DEFAULT_FRONTENDS = ("http", "grpc", "metrics")
"""Served without being named, where the plugin is installed."""
NO_TRANSPORT = "none"
"""The name of the transport where each frontend listens by itself."""
REMOVED_TRANSPORTS = {"envoy": "the transport 'envoy' was removed; put an Envoy proxy in front of the server instead"}
DEFAULT_BACKEND_DIRECTORY = "/opt/tritonserver/backends"


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Part of a server's configuration."""


class RepositorySettings(_Section, frozen=True):
    """One model repository; the scheme of `url` chooses the plugin, no scheme is a local folder.

    `options` are that plugin's, for this repository alone: they win over `repository_options` of the scheme.
    """

    url: Annotated[str, Meta(min_length=1)]
    options: RawOptions = {}


class ControlSettings(_Section, frozen=True):
    """Which models are loaded and when."""

    mode: Annotated[
        Literal["none", "explicit", "poll"],
        Meta(description="none: load all at start; explicit: on request; poll: follow the repositories."),
    ] = "none"
    interval_s: Annotated[
        float, Meta(ge=0, description="Seconds between two looks at the repositories (mode poll).")
    ] = 15
    load: Annotated[
        list[str], Meta(description='Models to load at start (mode explicit); "*" alone is all of them.')
    ] = []
    threads: Annotated[
        int, Meta(ge=1, description="How many models load at the same time at startup and in a poll.")
    ] = 4
    load_timeout_s: Annotated[
        float,
        Meta(ge=0, description="A load that takes longer fails; a model in a process is killed (0: no limit)."),
    ] = 0.0
    retries: Annotated[int, Meta(ge=0, description="How often a failed load is tried again.")] = 0


class AccessSettings(_Section, frozen=True):
    """What authentication leaves open; without `auth` everything is."""

    open: Annotated[
        frozenset[Literal["health", "metrics"]],
        Meta(description="Doors that need no credentials: health (liveness and readiness) and metrics."),
    ] = frozenset({"health"})


class PluginSettings(_Section, frozen=True):
    """Which installed plugins take part."""

    disable: Annotated[list[str], Meta(description="Entry points or distributions that are not loaded.")] = []


class ServerConfig(_Section, frozen=True):
    """Everything that `build` needs to know; each field has a default, so that no configuration serves ./models.

    The values under `frontends`, `transport`, `cache`, `observers`, `auth`, `routers`, `operations`, `backends`, `repo_agents` and `repository_options` are
    raw: the class that a plugin registered under that key says what they may be. Decode them with `decode_options`.
    """

    repositories: Annotated[list[RepositorySettings], Meta(min_length=1, description="Where the models are.")] = (
        msgspec.field(default_factory=lambda: [RepositorySettings(DEFAULT_REPOSITORY)])
    )
    control: ControlSettings = ControlSettings()
    host: Annotated[
        str, Meta(min_length=1, description="Bind address of every frontend; 0.0.0.0 opens it to the network.")
    ] = "127.0.0.1"
    id: Annotated[str, Meta(description="The name that server metadata shows.")] = "triton"
    exit_on_error: Annotated[
        bool, Meta(description="Exit when a model fails to load at start, or a repository cannot be read.")
    ] = True
    strict_readiness: Annotated[bool, Meta(description="Ready only when every model is.")] = True
    exit_timeout_s: Annotated[float, Meta(ge=0, description="Seconds to wait for live requests on exit.")] = 30
    single_port: Annotated[
        Annotated[int, Meta(ge=0, le=65535)] | None,
        Meta(description="Serve HTTP and gRPC on this port instead of one port each; 0 picks a free one."),
    ] = None
    frontend_processes: Annotated[
        int,
        Meta(
            ge=0,
            le=1024,
            description="Processes that serve HTTP and gRPC in front of the one that runs models; 0: that one does.",
        ),
    ] = 0
    allow_client_shm: Annotated[
        bool, Meta(description="Let clients register shared memory for inputs and outputs.")
    ] = False
    disable_auto_complete: Annotated[bool, Meta(description="Take config.pbtxt as it is.")] = False
    model_config_name: Annotated[
        str, Meta(pattern=r"^[^\s/]*$", description="Read configs/NAME.pbtxt of a model where it exists.")
    ] = ""
    model_namespacing: Annotated[
        bool,
        Meta(
            description="Let repositories hold models of the same name; an ensemble finds those of its own repository first."
        ),
    ] = False
    frontends: dict[str, RawOptions | bool] = {}
    transport: Annotated[
        dict[str, RawOptions],
        Meta(description="What carries the frontends instead of listeners of their own, one at most."),
    ] = {}
    cache: Annotated[dict[str, RawOptions], Meta(description="The response cache, one at most.")] = {}
    observers: dict[str, RawOptions] = {}
    auth: Annotated[dict[str, RawOptions], Meta(description="Authenticators, asked in this order.")] = {}
    access: AccessSettings = AccessSettings()
    sharing: Annotated[dict[str, RawOptions], Meta(description="How callers share the server, one way at most.")] = {}
    routers: Annotated[
        dict[str, RawOptions],
        Meta(description="What decides where requests go; the first is the one that they meet first."),
    ] = {}
    operations: Annotated[dict[str, RawOptions], Meta(description="Groups of management operations to offer.")] = {}
    rate_limit: RateLimitSettings = RateLimitSettings()
    devices: DeviceSettings = DeviceSettings()
    memory: MemorySettings = MemorySettings()
    request_memory: Annotated[
        ByteSize,
        Meta(
            ge=0,
            description="What requests and unsent answers together may hold in frontends; 0: a quarter of the memory limit.",
        ),
    ] = 0
    host_policies: Annotated[
        dict[str, HostPolicySettings], Meta(description="Where on the host instances run, by the name of their policy.")
    ] = {}
    backends: dict[str, RawOptions] = {}
    backend_defaults: Annotated[RawOptions, Meta(description="Options for every backend that knows them.")] = {}
    backend_directory: Annotated[
        str,
        Meta(
            min_length=1,
            description="Where Python-based backends are: NAME/model.py serves the models that say backend NAME.",
        ),
    ] = DEFAULT_BACKEND_DIRECTORY
    repo_agents: dict[str, RawOptions] = {}
    required_repo_agents: Annotated[
        list[str],
        Meta(description="Repository agents that every model's configuration must name, or it is not loaded."),
    ] = []
    repository_options: Annotated[
        dict[str, RawOptions], Meta(description="Options of repositories by URL scheme.")
    ] = {}
    plugins: PluginSettings = PluginSettings()
    logging: LogSettings = LogSettings()
    trace: TraceConfig = TraceConfig()
    latencies: LatencySettings = LatencySettings()

    def enabled_frontends(self, installed: Collection[str]) -> dict[str, RawOptions]:
        """Return the raw options of each frontend to start: those that are named, and the default ones `installed` has."""
        found = {name: True for name in DEFAULT_FRONTENDS if name in installed} | self.frontends
        return {name: {} if raw is True else raw for name, raw in found.items() if not isinstance(raw, bool) or raw}


def decode_server_config(raw: object) -> ServerConfig:
    """Return the configuration that `raw`, the plain data of server.yaml, describes.

    `frontends: {http: }` and `{http: true}` mean no options, `{http: false}` turns the frontend off. `transport: NAME` means no options either.
    Raises InvalidServerConfig with every problem.
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
    return {**raw, "frontends": {name: True if value is None else value for name, value in frontends.items()}}


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
        problems.append(ConfigProblem("transport", "there can be one transport"))
    problems += [
        ConfigProblem(f"transport.{name}", text)
        for name, text in REMOVED_TRANSPORTS.items()
        if name in config.transport
    ]
    if config.single_port is not None and config.frontend_processes:
        problems.append(ConfigProblem("single_port", "cannot be combined with frontend_processes; remove one of them"))
    if config.single_port is not None and config.transport:
        name = next(iter(config.transport))
        problems.append(
            ConfigProblem("single_port", f"needs the built-in HTTP/2 server; remove the transport '{name}'")
        )
    if len(config.sharing) > 1:
        problems.append(ConfigProblem("sharing", "there can be one way of sharing the server"))
    if control.load not in ([], ["*"]) and control.mode != "explicit":
        problems.append(
            ConfigProblem("control.load", f"mode '{control.mode}' loads every model; set control.mode to explicit")
        )
    if "*" in control.load and len(control.load) > 1:
        text = "Wildcard model name '*' must be the ONLY startup model if specified at all."
        problems.append(ConfigProblem("control.load", text))
    if control.mode == "poll" and control.interval_s == 0:
        problems.append(ConfigProblem("control.interval_s", "mode 'poll' needs more than 0 seconds"))
    problems += device_problems(config.devices)
    problems += memory_problems(config.memory)
    problems += _each_parsed(parse_quantiles, {"latencies.quantiles": config.latencies.quantiles})
    problems += _each_parsed(
        parse_resource, {f"rate_limit.resources.{key}": key for key in config.rate_limit.resources}
    )
    cores = {f"host_policies.{name}.cpu_cores": policy.cpu_cores for name, policy in config.host_policies.items()}
    problems += _each_parsed(parse_cores, {path: text for path, text in cores.items() if text})
    return problems


def _each_parsed(parse: Callable[[str], object], texts: Mapping[str, str]) -> Iterator[ConfigProblem]:
    """Yield a problem for each of `texts`, by their paths, that `parse` refuses."""
    for path, text in texts.items():
        try:
            parse(text)
        except ValueError as error:
            yield ConfigProblem(path, str(error))
