"""An engine whose models are functions of the test, and client helpers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np

from tritonpy import (
    CallbackSink,
    Engine,
    InferRequest,
    InferResponse,
    InvalidArgument,
    Tensor,
    TritonError,
)
from tritonpy.config import decode_options
from tritonpy.frontend import Router, RouterContext
from tritonpy.metrics import CustomMetrics
from tritonpy.plugins import NoOptions
from tritonpy_testing import ToyEngine
from tritonpy_traffic.options import TrafficOptions
from tritonpy_traffic.router import TrafficRouter

Act = Callable[[InferRequest], None]


class ScriptedRouter(Router):
    """An engine with scripted models.

    `models[name, version]` are functions that receive a request. The version -1 needs an entry,
    too. Other models are unknown.
    """

    def __init__(self, toy: ToyEngine) -> None:
        super().__init__(
            NoOptions(), toy, RouterContext(CustomMetrics(), logging.getLogger("test"))
        )
        self.models: dict[tuple[str, int], Act] = {}
        self.calls: list[tuple[str, int]] = []
        self.held: list[InferRequest] = []

    def _find(self, name: str, version: int) -> Act:
        if (name, version) not in self.models:
            raise InvalidArgument(f"Request for unknown model: '{name}' is not found")
        return self.models[name, version]

    def infer(self, request: InferRequest) -> None:
        model = self._find(request.model_name, request.model_version)
        self.calls.append((request.model_name, request.model_version))
        model(request)

    def model_config(self, name: str, version: int = -1) -> Any:
        self._find(name, version)
        return self.engine.model_config("identity")

    def good(self, request: InferRequest) -> None:
        request.respond(
            InferResponse([numbers(7)], request.model_name, request.model_version, request.id)
        )

    def bad(self, request: InferRequest) -> None:
        request.respond(InferResponse.failed(request, TritonError("it failed")))

    def hold(self, request: InferRequest) -> None:
        self.held.append(request)

    def rejecting(self, error: TritonError) -> Act:
        def reject(_request: InferRequest) -> None:
            raise error

        return reject


def numbers(*values: float) -> Tensor:
    return Tensor.from_numpy("OUT", np.array(values, np.float32))


def router_of(engine: Engine, **options: Any) -> TrafficRouter:
    metrics = CustomMetrics()
    router = TrafficRouter(
        decode_options(TrafficOptions, options, ""),
        engine,
        RouterContext(metrics, logging.getLogger("test")),
    )
    router.metrics = metrics  # type: ignore[attr-defined]
    return router


def request_of(name: str, **more: Any) -> tuple[InferRequest, list[InferResponse]]:
    """Return a request and the list that receives its responses."""
    responses: list[InferResponse] = []
    sink = CallbackSink(lambda _request, response: responses.append(response))
    return InferRequest(name, {"IN": numbers(1)}, sink, **more), responses


def infer(router: TrafficRouter, name: str = "route", **more: Any) -> list[InferResponse]:
    """Send a request. Return the responses that were sent immediately."""
    request, responses = request_of(name, **more)
    router.infer(request)
    return responses
