"""Routers and operation groups of plugins, in front of the local engine."""

from __future__ import annotations

import logging
from typing import Any

from tritonpy.api.engine import Engine
from tritonpy.api.operation import OperationGroup
from tritonpy.api.router import Router, RouterContext
from tritonpy.engine.local import LocalEngine
from tritonpy.plugins import PluginManager
from tritonpy_config.server import ServerConfig, decode_options
from tritonpy_metrics import CustomMetrics

log = logging.getLogger("tritonpy.engine")


class RouterChain:
    """The chain of routers.

    Client requests go to `engine`: the outermost router, or the local engine without routers.
    """

    def __init__(self, engine: Engine, parts: list[Router | OperationGroup]) -> None:
        self.engine = engine
        self._parts = parts

    @property
    def headers(self) -> frozenset[str]:
        """The headers that routers read, in lower case.

        Frontends keep these headers of a request.
        """
        return frozenset[str]().union(
            *(part.headers() for part in self._parts if isinstance(part, Router))
        )

    def close(self) -> None:
        """Close routers and operation groups. No request is in flight any more."""
        for part in self._parts:
            try:
                part.close()
            except Exception:
                log.exception("%s failed to close", type(part).__name__)


def make_router_chain(
    engine: LocalEngine, config: ServerConfig, plugins: PluginManager, metrics: CustomMetrics
) -> RouterChain:
    """Return the chain that `config` defines in front of `engine`.

    Raises PluginError for a missing plugin, or for an operation that is offered twice.
    """
    outermost: Engine = engine
    parts: list[Router | OperationGroup] = []
    for name, raw in reversed(config.routers.items()):  # the first is the outermost
        kind: Any = plugins.get("tritonpy_routers", name, "router").load()
        context = RouterContext(metrics, logging.getLogger(f"tritonpy.{name}"))
        router: Router = kind(
            decode_options(kind.Options, raw, f"routers.{name}"), outermost, context
        )
        engine.offer(router.router_operations())
        parts.insert(0, router)
        outermost = router
    for name, raw in config.operations.items():
        kind = plugins.get("tritonpy_operations", name, "operation group").load()
        group: OperationGroup = kind(
            decode_options(kind.Options, raw, f"operations.{name}"), outermost
        )
        engine.offer(group.operations())
        parts.append(group)
    return RouterChain(outermost, parts)
