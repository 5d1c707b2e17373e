from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import tritonpy_traffic
from tritonpy_testing import RouterContract
from tritonpy_traffic.router import TrafficRouter

ROUTES = {"route": {"targets": [{"model": "identity"}], "shadow": {"model": "text"}}}


class TestTrafficRouterWithoutRoutes(RouterContract):
    plugin = tritonpy_traffic
    plugin_class = TrafficRouter
    name = "traffic"


class TestTrafficRouterWithRoutes(TestTrafficRouterWithoutRoutes):
    options: ClassVar[Mapping[str, Any]] = {"routes": ROUTES}


class TestTrafficRouterWithRoutesNamedLikeModels(TestTrafficRouterWithoutRoutes):
    """The routes have the names of the toy models and lead to them, which must make no difference."""

    options: ClassVar[Mapping[str, Any]] = {
        "routes": {
            name: {"targets": [{"model": name}]}
            for name in ("identity", "text", "failing", "repeat")
        }
    }
