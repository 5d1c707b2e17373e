"""An engine whose models do what a test says, and the questions of a client."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np

from tritonpy import (
    CallbackSink,
    CustomMetrics,
    Engine,
    InferRequest,
    InferResponse,
    InvalidArgument,
    NoOptions,
    Router,
    RouterContext,
    Tensor,
    TritonError,
    decode_options,
)
from tritonpy.testing import ToyEngine
from tritonpy_traffic.options import TrafficOptions
from tritonpy_traffic.router import TrafficRouter

Act = Callable[[InferRequest], None]


class Scripted(Router):
    """Models are `models[name, version]`, functions that get a request; -1 is a version too. What is not there is unknown."""

    def __init__(self, toy: ToyEngine) -> None:
        super().__init__(NoOptions(), toy, RouterContext(CustomMetrics(), logging.getLogger("test")))
        self.models: dict[tuple[str, int], Act] = {}
        self.taken: list[tuple[str, int]] = []
        self.held: list[InferRequest] = []

    def _find(self, name: str, version: int) -> Act:
        if (name, version) not in self.models:
            raise InvalidArgument(f"Request for unknown model: '{name}' is not found")
        return self.models[name, version]

    def infer(self, request: InferRequest) -> None:
        model = self._find(request.model_name, request.model_version)
        self.taken.append((request.model_name, request.model_version))
        model(request)

    def model_config(self, name: str, version: int = -1) -> Any:
        self._find(name, version)
        return self.engine.model_config("identity")

    def good(self, request: InferRequest) -> None:
        request.respond(InferResponse([numbers(7)], request.model_name, request.model_version, request.id))

    def bad(self, request: InferRequest) -> None:
        request.respond(InferResponse.failed(request, TritonError("it failed")))

    def hold(self, request: InferRequest) -> None:
        self.held.append(request)

    def refusing(self, error: TritonError) -> Act:
        def refuse(_request: InferRequest) -> None:
            raise error

        return refuse


def numbers(*values: float) -> Tensor:
    return Tensor.from_numpy("OUT", np.array(values, np.float32))


def router_of(engine: Engine, **options: Any) -> TrafficRouter:
    metrics = CustomMetrics()
    router = TrafficRouter(
        decode_options(TrafficOptions, options, ""), engine, RouterContext(metrics, logging.getLogger("test"))
    )
    router.metrics = metrics  # type: ignore[attr-defined]
    return router


def request_of(name: str, **more: Any) -> tuple[InferRequest, list[InferResponse]]:
    """Return a request and the list that takes its answers."""
    answers: list[InferResponse] = []
    sink = CallbackSink(lambda _request, response: answers.append(response))
    return InferRequest(name, {"IN": numbers(1)}, sink, **more), answers


def ask(router: TrafficRouter, name: str = "route", **more: Any) -> list[InferResponse]:
    """Send a request; what was answered until it was handed over comes back."""
    request, answers = request_of(name, **more)
    router.infer(request)
    return answers
