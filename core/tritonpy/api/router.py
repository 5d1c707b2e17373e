"""The interface of what decides where the requests of clients go."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tritonpy.api.engine_in_front import EngineInFront
from tritonpy.api.operation import Answerer, Operation
from tritonpy.api.options import NoOptions, Options

if TYPE_CHECKING:
    from tritonpy.api.engine import Engine
    from tritonpy.custom_metrics import CustomMetrics


@dataclass(frozen=True, slots=True)
class RouterContext:
    """What the server gives to a router: where its metrics are shown, and where it tells what happens."""

    metrics: CustomMetrics
    log: logging.Logger


class Router(EngineInFront):
    """Stands between the frontends and the engine, and passes on what it does not decide.

    Only requests of clients meet it: what models ask of each other goes where they say. A request may be given another `model_name`,
    `model_version` and `sink` before it is passed on; if the engine refuses it, they are to be put back before the refusal is passed on.
    """

    Options: ClassVar[type[Options]] = NoOptions

    def __init__(self, options: Any, engine: Engine, context: RouterContext) -> None:
        super().__init__(engine)
        self.options = options
        self.context = context

    def offered(self) -> Mapping[Operation, Answerer]:
        """Return operations that change it at run time (optional); asked once."""
        return {}

    def headers(self) -> frozenset[str]:
        """Return the names, in lower case, of the headers that it looks for in `InferRequest.headers` (optional); asked once."""
        return frozenset()

    def close(self) -> None:
        """End (optional); no request is open any more."""
