"""The contract of routers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from tritonpy.api.engine import Engine
from tritonpy.api.router import Router, RouterContext
from tritonpy.custom_metrics import CustomMetrics
from tritonpy.engine.operations import Operations
from tritonpy.testing.contracts.engine import EngineContract
from tritonpy.testing.contracts.operations import check_operations
from tritonpy.testing.contracts.plugin import PluginContract
from tritonpy.testing.toy_engine import ToyEngine


class RouterContract(PluginContract, EngineContract):
    """What `Router` promises of what it does not decide. Give `plugin_class` and, in `options`, nothing that concerns the toy models."""

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
        """Give a router in front of `engine`."""
        router = self.make(engine)
        yield router
        router.close()

    def test_the_headers_that_it_reads_are_named_as_requests_name_them(self) -> None:
        with self.pair() as (_, router):
            assert isinstance(router, Router)
            assert all(name == name.lower() != "" for name in router.headers()), (
                "names of headers are compared in lower case"
            )

    def test_what_it_offers_answers_with_plain_json_or_says_what_is_wrong(self) -> None:
        with ToyEngine() as behind, self.connect(behind) as router:
            assert isinstance(router, Router)
            operations = Operations()
            operations.offer(router.offered())
            check_operations(operations)
