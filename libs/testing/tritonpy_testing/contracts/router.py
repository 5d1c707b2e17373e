"""The contract of routers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from tritonpy import Engine
from tritonpy.frontend import Operations, Router, RouterContext
from tritonpy.metrics import CustomMetrics
from tritonpy_testing.contracts.engine import EngineContract
from tritonpy_testing.contracts.operations import check_operations
from tritonpy_testing.contracts.plugin import PluginContract
from tritonpy_testing.toy_engine import ToyEngine


class RouterContract(PluginContract, EngineContract):
    """The contract of `Router` for requests that it only forwards.

    Set `plugin_class`, and `options` that do not concern the toy models.
    """

    interface = Router
    hook = "tritonpy_routers"

    def make(self, engine: Engine) -> Router:
        """Return a new router in front of `engine`."""
        router = self.plugin_class(
            self.make_options(), engine, RouterContext(CustomMetrics(), logging.getLogger("router"))
        )
        assert isinstance(router, Router)
        return router

    @contextmanager
    def connect(self, engine: Engine) -> Iterator[Engine]:
        """Provide a router in front of `engine`."""
        router = self.make(engine)
        yield router
        router.close()

    def test_header_names_are_in_lower_case(self) -> None:
        with self.pair() as (_, router):
            assert isinstance(router, Router)
            assert all(name == name.lower() != "" for name in router.headers()), (
                "header names are compared in lower case"
            )

    def test_offered_operations_return_json_or_raise_triton_errors(self) -> None:
        with ToyEngine() as behind, self.connect(behind) as router:
            assert isinstance(router, Router)
            operations = Operations()
            operations.offer(router.router_operations())
            check_operations(operations)
