"""The interface of routers, which decide where the requests of clients go."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tritonpy.api.forwarding_engine import ForwardingEngine
from tritonpy.api.operation import Operation, OperationHandler
from tritonpy.api.options import NoOptions, Options

if TYPE_CHECKING:
    from tritonpy.api.engine import Engine
    from tritonpy.custom_metrics import CustomMetrics


@dataclass(frozen=True, slots=True)
class RouterContext:
    """The environment of a router: where it registers its metrics and writes its log."""

    metrics: CustomMetrics
    log: logging.Logger


class Router(ForwardingEngine):
    """Sits between the frontends and the engine, and forwards the calls that it does not handle.

    Only requests of clients pass through it. Calls from models to models go directly to their
    target. A router may change `model_name`, `model_version` and `sink` of a request before it
    forwards it. If the engine refuses the request, the router must restore them before it raises
    the error.
    """

    Options: ClassVar[type[Options]] = NoOptions

    def __init__(self, options: Any, engine: Engine, context: RouterContext) -> None:
        super().__init__(engine)
        self.options = options
        self.context = context

    def router_operations(self) -> Mapping[Operation, OperationHandler]:
        """Return operations that change the router at run time (optional); called once."""
        return {}

    def headers(self) -> frozenset[str]:
        """Return the lower-case names of the headers that it needs (optional); called once.

        They are kept in `InferRequest.headers`.
        """
        return frozenset()

    def close(self) -> None:
        """Release resources (optional); no request is in flight any more."""
