"""What stands between the engine and the frontends: the routers, and the groups of operations that plugins offer."""

from __future__ import annotations

import logging
from typing import Any

from tritonpy.api.engine import Engine
from tritonpy.api.operation import OperationGroup
from tritonpy.api.router import Router, RouterContext
from tritonpy.config.server import ServerConfig, decode_options
from tritonpy.custom_metrics import CustomMetrics
from tritonpy.engine.local import LocalEngine
from tritonpy.plugins import PluginManager

log = logging.getLogger("tritonpy.engine")


class Front:
    """`engine` is what clients reach: the local one itself where nothing is configured that stands in front of it."""

    def __init__(self, engine: Engine, parts: list[Router | OperationGroup]) -> None:
        self.engine = engine
        self._parts = parts

    @property
    def headers(self) -> frozenset[str]:
        """The headers that routers look for, in lower case: frontends keep them."""
        return frozenset[str]().union(*(part.headers() for part in self._parts if isinstance(part, Router)))

    def close(self) -> None:
        """End routers and groups; no request is open any more."""
        for part in self._parts:
            try:
                part.close()
            except Exception:
                log.exception("%s failed to close", type(part).__name__)


def make_front(engine: LocalEngine, config: ServerConfig, plugins: PluginManager, metrics: CustomMetrics) -> Front:
    """Return what `config` puts in front of `engine`. Raises PluginError for what is missing or offered twice."""
    front: Engine = engine
    parts: list[Router | OperationGroup] = []
    for name, raw in reversed(config.routers.items()):  # the first is the outermost
        kind: Any = plugins.get("tritonpy_routers", name, "router").load()
        context = RouterContext(metrics, logging.getLogger(f"tritonpy.{name}"))
        router: Router = kind(decode_options(kind.Options, raw, f"routers.{name}"), front, context)
        engine.offer(router.offered())
        parts.insert(0, router)
        front = router
    for name, raw in config.operations.items():
        kind = plugins.get("tritonpy_operations", name, "group of operations").load()
        group: OperationGroup = kind(decode_options(kind.Options, raw, f"operations.{name}"), front)
        engine.offer(group.operations())
        parts.append(group)
    return Front(front, parts)
