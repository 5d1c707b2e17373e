"""The parts of a server that plugins bring: a function for each section of server.yaml that names some.

All raise PluginError for one that is not installed and InvalidServerConfig for wrong options.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tritonpy.api.frontend import Frontend, FrontendContext
from tritonpy.api.observer import Observer
from tritonpy.api.rate_limiter import NoRateLimiter, RateLimiter
from tritonpy.api.repo_agent import RepoAgent
from tritonpy.api.sharing import Sharing
from tritonpy.config.server import ServerConfig, decode_options
from tritonpy.custom_metrics import CustomMetrics, ModelMetrics
from tritonpy.model.response_cache import ResponseCache
from tritonpy.plugins import PluginManager
from tritonpy.plugins.carrying import frontend_classes
from tritonpy.request_memory import RequestMemory
from tritonpy.runners.timer import Timer
from tritonpy.tracing.tracing import Tracing

if TYPE_CHECKING:
    from tritonpy.access.gatekeeper import Gatekeeper
    from tritonpy.listening.single_port import SinglePort

log = logging.getLogger("tritonpy.server")


def make_gatekeeper(config: ServerConfig, plugins: PluginManager, metrics: CustomMetrics) -> Gatekeeper | None:
    """Return what asks the authenticators of `auth:`, None without any."""
    if not config.auth:
        return None
    from tritonpy.access import composing

    return composing.make_gatekeeper(config, plugins, ModelMetrics(metrics))


def make_frontends(
    config: ServerConfig,
    plugins: PluginManager,
    gatekeeper: Gatekeeper | None,
    tracer: Tracing,
    kept_headers: frozenset[str],
    metrics: CustomMetrics,
    memory: RequestMemory,
    single_port: SinglePort | None = None,
) -> dict[str, Frontend]:
    """Return the frontends that are on, by name; where a transport carries one, that is its class."""
    frontends: dict[str, Frontend] = {}
    class_of = frontend_classes(plugins, config.transport)
    for name, raw in config.enabled_frontends(plugins.table("tritonpy_frontends")).items():
        kind = class_of(name)
        options = decode_options(kind.Options, raw, f"frontends.{name}")
        own = logging.getLogger(f"tritonpy.{name}")
        context = FrontendContext(
            config.host,
            own,
            gatekeeper,
            tracer,
            kept_headers,
            ModelMetrics(metrics),
            single_port=single_port if kind.protocols else None,
            memory=memory,
        )
        frontends[name] = kind(options, context)
    return frontends


def make_observers(config: ServerConfig, plugins: PluginManager) -> list[Observer]:
    """Return those of `observers:`."""
    observers: list[Observer] = []
    for name, raw in config.observers.items():
        kind = plugins.get("tritonpy_observers", name, "observer").load()
        observers.append(kind(decode_options(kind.Options, raw, f"observers.{name}")))
    return observers


def make_cache(
    config: ServerConfig, plugins: PluginManager, timer: Timer, metrics: CustomMetrics
) -> ResponseCache | None:
    """Return the one of `cache:`, None without."""
    for name, raw in config.cache.items():  # one at most: the configuration was checked
        kind = plugins.get("tritonpy_caches", name, "response cache").load()
        cache = ResponseCache(kind(decode_options(kind.Options, raw, f"cache.{name}")), name, timer)
        metrics.add_source(cache.metrics)
        return cache
    return None


def make_sharing(config: ServerConfig, plugins: PluginManager, metrics: CustomMetrics) -> Sharing | None:
    """Return the one of `sharing:`, None without."""
    for name, raw in config.sharing.items():  # one at most: the configuration was checked
        kind = plugins.get("tritonpy_sharings", name, "way of sharing").load()
        sharing: Sharing = kind(decode_options(kind.Options, raw, f"sharing.{name}"), ModelMetrics(metrics))
        return sharing
    return None


def make_limiter(config: ServerConfig) -> RateLimiter:
    """Return the limiter that `rate_limit:` asks for."""
    if config.rate_limit.mode == "off":
        if config.rate_limit.resources:
            log.warning("rate_limit.resources has no effect: rate_limit.mode is off")
        return NoRateLimiter()
    from tritonpy.runners.limiter.execution_count import ExecutionCountLimiter

    return ExecutionCountLimiter(config.rate_limit.resources)


def make_agents(config: ServerConfig, plugins: PluginManager) -> Callable[[str], RepoAgent]:
    """Return what makes agents by name; raise for a required one that cannot be made: without it no model would load."""
    for name in config.required_repo_agents:
        _agent(config, plugins, name)
    return lambda name: _agent(config, plugins, name)


def _agent(config: ServerConfig, plugins: PluginManager, name: str) -> RepoAgent:
    kind: Any = plugins.get("tritonpy_repo_agents", name, "repository agent").load()
    agent: RepoAgent = kind(decode_options(kind.Options, config.repo_agents.get(name, {}), f"repo_agents.{name}"))
    return agent
