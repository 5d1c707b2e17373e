"""Backends that call other models through the engine, and wait for the answer."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import ClassVar

import numpy as np

from tritonpy.api.backend import Array, Backend
from tritonpy.errors import Cancelled, TritonError
from tritonpy.testing.witness import PATIENCE_S
from tritonpy.types import Batch, CallbackSink, InferRequest, InferResponse, Tensor


class Caller(Backend):
    """Adds 1 to what the models answer that the request's parameter `calls` names, each calling the next: "b c" calls b, which calls c.

    Requests whose parameter `meet` names the same folder begin together, two at a time.
    """

    def execute(self, batch: Batch) -> None:
        (request,) = batch.requests
        if "meet" in request.parameters:
            _meet(Path(str(request.parameters["meet"])), self.instance.name)
        self.answer(request)

    def answer(self, request: InferRequest) -> None:
        """Call, and answer."""
        try:
            value = self._called(request)
        except TritonError as error:
            request.respond(InferResponse.failed(request, error))
            return
        request.respond(InferResponse([Tensor.from_numpy("OUT", value + np.int32(1))]))

    def _called(self, request: InferRequest) -> Array:
        name, _, calls = str(request.parameters.get("calls", "")).partition(" ")
        if not name:
            return request.inputs["IN"].numpy()
        answered, answers = threading.Event(), list[InferResponse]()

        def take(_: InferRequest, response: InferResponse) -> None:
            answers.append(response)
            answered.set()

        call = InferRequest(name, request.inputs, CallbackSink(take), parameters={"calls": calls}, parent=request)
        self.model.engine.infer(call)
        assert answered.wait(PATIENCE_S), f"'{name}' never answered '{self.model.name}'"
        if answers[0].error is not None:
            raise answers[0].error
        return answers[0].outputs[0].numpy()


class Detached(Caller):
    """Does the same from a thread of its own, once `execute` has returned."""

    def execute(self, batch: Batch) -> None:
        (request,) = batch.requests

        def answer() -> None:
            while batch.executing:
                time.sleep(0)
            self.answer(request)

        threading.Thread(target=answer).start()


class Patient(Backend):
    """Waits until nobody wants the answer; `began` says that it waits."""

    began: ClassVar[threading.Event] = threading.Event()

    def execute(self, batch: Batch) -> None:
        (request,) = batch.requests
        self.began.set()
        end = time.monotonic() + PATIENCE_S
        while not request.cancelled:
            assert time.monotonic() < end, "the request was never cancelled"
            time.sleep(0)
        request.respond(InferResponse.failed(request, Cancelled("nobody waits any more")))


def _meet(folder: Path, name: str) -> None:
    (folder / name).touch()
    end = time.monotonic() + PATIENCE_S
    while len(list(folder.iterdir())) < 2:
        assert time.monotonic() < end, "nobody came to meet"
        time.sleep(0)
