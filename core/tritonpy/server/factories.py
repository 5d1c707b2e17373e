"""Factories of a server's plugin objects, one for each section of server.yaml that names plugins.

All raise PluginError for a plugin that is not installed and InvalidServerConfig for wrong options.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from tritonpy.api.authenticator import Authenticator
from tritonpy.api.device import Device, NoDevice, missing_plugin
from tritonpy.api.frontend import Frontend, FrontendContext, HttpMounts
from tritonpy.api.observer import Observer
from tritonpy.api.rate_limiter import RateLimiter
from tritonpy.api.repo_agent import RepoAgent
from tritonpy.api.repository import Repository, RepositoryContext
from tritonpy.api.sharing import Sharing
from tritonpy.api.trace_sink import TraceSettings, TraceSink
from tritonpy.model.response_cache import ResponseCache
from tritonpy.plugins import PluginManager
from tritonpy.plugins.manager import frontend_classes
from tritonpy.runners.timer import Timer
from tritonpy.tracing.tracing import Tracing
from tritonpy_config.server import ServerConfig, decode_options
from tritonpy_config.server.sections import DeviceSettings, TraceConfig
from tritonpy_metrics import CustomMetrics, ModelMetrics
from tritonpy_network.request_memory import RequestMemory

if TYPE_CHECKING:
    from tritonpy.auth.authorizer import Authorizer
    from tritonpy.server.single_port import SinglePort

log = logging.getLogger("tritonpy.server")


HOOK = "tritonpy_repositories"
ANY = "*"
"""The name of the repository for schemes that no other one is registered for."""


def make_tracing(config: TraceConfig, plugins: PluginManager) -> Tracing:
    """Return the tracer that `config` describes.

    Raises PluginError for an unknown mode, InvalidServerConfig for invalid options.
    """
    kind: Any = plugins.get("tritonpy_trace_sinks", config.mode, "trace mode").load()
    options = decode_options(
        kind.Options, config.modes.get(config.mode, {}), f"trace.modes.{config.mode}"
    )
    sink: TraceSink = kind(options)
    start = TraceSettings(
        level=[] if "OFF" in config.level else list(config.level),
        rate=config.rate,
        count=config.count,
        log_frequency=getattr(options, "log_frequency", 0),
        file=getattr(options, "file", ""),
        mode=config.mode,
        options=dict(sink.public_options()),
    )
    return Tracing(sink, start)


def open_repositories(config: ServerConfig, plugins: PluginManager) -> list[Repository]:
    """Return the configured repositories in order.

    Raises `StartupError` for a scheme without a plugin, and for invalid options.
    """
    cache = cache_folder(os.environ)
    table = plugins.table(HOOK)
    repositories: list[Repository] = []
    for number, settings in enumerate(config.repositories):
        scheme = urlparse(settings.url).scheme if "://" in settings.url else "file"
        name = ANY if scheme not in table and ANY in table else scheme
        kind = plugins.get(HOOK, name, "model repository").load()
        where = (
            f"repositories[{number}].options"
            if settings.options
            else f"repository_options.{scheme}"
        )
        raw = {**config.repository_options.get(scheme, {}), **settings.options}
        repositories.append(
            kind(decode_options(kind.Options, raw, where), RepositoryContext(settings.url, cache))
        )
    return repositories


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder for persistent data of the user's servers; it may not exist yet."""
    if environment.get("XDG_CACHE_HOME"):
        return Path(environment["XDG_CACHE_HOME"]) / "tritonpy"
    if environment.get("HOME"):
        return Path(environment["HOME"]) / ".cache" / "tritonpy"
    return Path(tempfile.gettempdir()) / f"tritonpy-{os.getuid()}"


def make_authorizer(
    config: ServerConfig, plugins: PluginManager, metrics: ModelMetrics
) -> Authorizer | None:
    """Return the authorizer with the authenticators of `auth:` in order, or None without any."""
    if not config.auth:
        return None
    from tritonpy.auth.authorizer import Authorizer
    from tritonpy.auth.denials import Denials

    authenticators: dict[str, Authenticator] = {}
    for name, raw in config.auth.items():
        kind = plugins.get("tritonpy_authenticators", name, "authenticator").load()
        authenticators[name] = kind(decode_options(kind.Options, raw, f"auth.{name}"))
    return Authorizer(
        authenticators, config.access.open, Denials(metrics, logging.getLogger("tritonpy.auth"))
    )


def make_frontends(
    config: ServerConfig,
    plugins: PluginManager,
    authorizer: Authorizer | None,
    tracer: Tracing,
    kept_headers: frozenset[str],
    metrics: CustomMetrics,
    memory: RequestMemory,
    gpus: Device,
    single_port: SinglePort | None = None,
) -> dict[str, Frontend]:
    """Return the enabled frontends by name; a transport that carries one provides its class."""
    frontends: dict[str, Frontend] = {}
    http_mounts = HttpMounts()
    class_of = frontend_classes(plugins, config.transport)
    for name, raw in config.enabled_frontends(plugins.table("tritonpy_frontends")).items():
        kind = class_of(name)
        options = decode_options(kind.Options, raw, f"frontends.{name}")
        own = logging.getLogger(f"tritonpy.{name}")
        context = FrontendContext(
            config.host,
            own,
            authorizer,
            tracer,
            kept_headers,
            ModelMetrics(metrics),
            memory=memory,
            single_port=single_port if kind.protocols else None,
            gpus=gpus,
            http_mounts=http_mounts,
        )
        frontends[name] = kind(options, context)
    return frontends


def make_gpus(config: ServerConfig, plugins: PluginManager, metrics: CustomMetrics) -> Device:
    """Return the GPUs of this machine; without a plugin for them there are none."""
    registration = plugins.table("tritonpy_devices").get("cuda")
    if registration is None and config.devices != DeviceSettings():
        log.warning("devices has no effect: %s", missing_plugin())
    gpus: Device = (
        NoDevice(config.devices) if registration is None else registration.load()(config.devices)
    )
    metrics.add_source(gpus.metrics)
    return gpus


def make_observers(config: ServerConfig, plugins: PluginManager) -> list[Observer]:
    """Return the observers of `observers:`."""
    observers: list[Observer] = []
    for name, raw in config.observers.items():
        kind = plugins.get("tritonpy_observers", name, "observer").load()
        observers.append(kind(decode_options(kind.Options, raw, f"observers.{name}")))
    return observers


def make_cache(
    config: ServerConfig, plugins: PluginManager, timer: Timer, metrics: CustomMetrics
) -> ResponseCache | None:
    """Return the response cache of `cache:`, or None."""
    for name, raw in config.cache.items():  # one at most: the configuration was checked
        library = config.library("cache", name)
        kind, given = plugins.find("tritonpy_caches", name, "response cache", raw, library)
        options = decode_options(kind.Options, given, f"cache.{name}")
        cache = ResponseCache(kind(options), name, timer)
        metrics.add_source(cache.metrics)
        return cache
    return None


def make_sharing(
    config: ServerConfig, plugins: PluginManager, metrics: CustomMetrics
) -> Sharing | None:
    """Return the sharing policy of `sharing:`, or None."""
    for name, raw in config.sharing.items():  # one at most: the configuration was checked
        kind = plugins.get("tritonpy_sharings", name, "sharing plugin").load()
        sharing: Sharing = kind(
            decode_options(kind.Options, raw, f"sharing.{name}"), ModelMetrics(metrics)
        )
        return sharing
    return None


def make_limiter(config: ServerConfig, plugins: PluginManager) -> RateLimiter:
    """Return the rate limiter that `rate_limit:` configures."""
    settings = config.rate_limit
    if settings.mode == "off" and settings.resources:
        log.warning("rate_limit.resources has no effect: rate_limit.mode is off")
    limiter: RateLimiter = plugins.get(
        "tritonpy_rate_limiters", settings.mode, "rate limiter"
    ).load()(settings.resources)
    return limiter


def make_agents(config: ServerConfig, plugins: PluginManager) -> Callable[[str], RepoAgent]:
    """Return the function that creates repository agents by name.

    Raises for a required agent that cannot be created, because no model would load without it.
    """
    for name in config.required_repo_agents:
        _agent(config, plugins, name)
    return lambda name: _agent(config, plugins, name)


def _agent(config: ServerConfig, plugins: PluginManager, name: str) -> RepoAgent:
    raw, library = config.repo_agents.get(name, {}), config.library("repo_agents", name)
    kind, given = plugins.find("tritonpy_repo_agents", name, "repository agent", raw, library)
    agent: RepoAgent = kind(decode_options(kind.Options, given, f"repo_agents.{name}"))
    return agent
