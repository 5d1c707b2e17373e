"""Factories of a server's plugin objects, one for each section of server.yaml that names plugins.

All raise PluginError for a plugin that is not installed and InvalidServerConfig for wrong options.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tritonpy.api.device import Device, NoDevice, missing_plugin
from tritonpy.api.frontend import Frontend, FrontendContext
from tritonpy.api.observer import Observer
from tritonpy.api.rate_limiter import NoRateLimiter, RateLimiter
from tritonpy.api.repo_agent import RepoAgent
from tritonpy.api.sharing import Sharing
from tritonpy.config.server import ServerConfig, decode_options
from tritonpy.config.server.device_settings import DeviceSettings
from tritonpy.custom_metrics import CustomMetrics, ModelMetrics
from tritonpy.model.response_cache import ResponseCache
from tritonpy.plugins import PluginManager
from tritonpy.plugins.frontend_classes import frontend_classes
from tritonpy.request_memory import RequestMemory
from tritonpy.runners.timer import Timer
from tritonpy.tracing.tracing import Tracing

if TYPE_CHECKING:
    from tritonpy.access.authorizer import Authorizer
    from tritonpy.network.single_port import SinglePort

log = logging.getLogger("tritonpy.server")


def make_authorizer(config: ServerConfig, plugins: PluginManager, metrics: CustomMetrics) -> Authorizer | None:
    """Return the authorizer for the authenticators of `auth:`, or None without any."""
    if not config.auth:
        return None
    from tritonpy.access import factory

    return factory.make_authorizer(config, plugins, ModelMetrics(metrics))


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
        )
        frontends[name] = kind(options, context)
    return frontends


def make_gpus(config: ServerConfig, plugins: PluginManager, metrics: CustomMetrics) -> Device:
    """Return the GPUs of this machine; without a plugin for them there are none."""
    registration = plugins.table("tritonpy_devices").get("cuda")
    if registration is None and config.devices != DeviceSettings():
        log.warning("devices has no effect: %s", missing_plugin())
    gpus: Device = NoDevice(config.devices) if registration is None else registration.load()(config.devices)
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
        kind = plugins.get("tritonpy_caches", name, "response cache").load()
        cache = ResponseCache(kind(decode_options(kind.Options, raw, f"cache.{name}")), name, timer)
        metrics.add_source(cache.metrics)
        return cache
    return None


def make_sharing(config: ServerConfig, plugins: PluginManager, metrics: CustomMetrics) -> Sharing | None:
    """Return the sharing policy of `sharing:`, or None."""
    for name, raw in config.sharing.items():  # one at most: the configuration was checked
        kind = plugins.get("tritonpy_sharings", name, "sharing plugin").load()
        sharing: Sharing = kind(decode_options(kind.Options, raw, f"sharing.{name}"), ModelMetrics(metrics))
        return sharing
    return None


def make_limiter(config: ServerConfig) -> RateLimiter:
    """Return the rate limiter that `rate_limit:` configures."""
    if config.rate_limit.mode == "off":
        if config.rate_limit.resources:
            log.warning("rate_limit.resources has no effect: rate_limit.mode is off")
        return NoRateLimiter()
    from tritonpy.runners.limiter.execution_count import ExecutionCountLimiter

    return ExecutionCountLimiter(config.rate_limit.resources)


def make_agents(config: ServerConfig, plugins: PluginManager) -> Callable[[str], RepoAgent]:
    """Return the function that creates repository agents by name.

    Raises for a required agent that cannot be created, because no model would load without it.
    """
    for name in config.required_repo_agents:
        _agent(config, plugins, name)
    return lambda name: _agent(config, plugins, name)


def _agent(config: ServerConfig, plugins: PluginManager, name: str) -> RepoAgent:
    kind: Any = plugins.get("tritonpy_repo_agents", name, "repository agent").load()
    agent: RepoAgent = kind(decode_options(kind.Options, config.repo_agents.get(name, {}), f"repo_agents.{name}"))
    return agent
