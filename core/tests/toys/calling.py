"""Backends that call other models through the engine and wait for the response."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import ClassVar

import numpy as np

from tritonpy.api.backend import Array, Backend
from tritonpy_testing.recording_sink import WAIT_S
from tritonpy_types import Batch, CallbackSink, InferRequest, InferResponse, Tensor
from tritonpy_types.errors import Cancelled, TritonError


class Caller(Backend):
    """Adds 1 to the response of the models that the request's parameter `calls` names.

    Each model calls the next: "b c" calls b, which calls c. Requests whose parameter `meet` names
    the same folder start together, two at a time.
    """

    def execute(self, batch: Batch) -> None:
        (request,) = batch.requests
        if "meet" in request.parameters:
            _meet(Path(str(request.parameters["meet"])), self.instance.name)
        self.answer(request)

    def answer(self, request: InferRequest) -> None:
        """Call the next model and respond."""
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
        done, responses = threading.Event(), list[InferResponse]()

        def take(_: InferRequest, response: InferResponse) -> None:
            responses.append(response)
            done.set()

        call = InferRequest(
            name, request.inputs, CallbackSink(take), parameters={"calls": calls}, parent=request
        )
        self.model.engine.infer(call)
        assert done.wait(WAIT_S), f"'{name}' never responded to '{self.model.name}'"
        if responses[0].error is not None:
            raise responses[0].error
        return responses[0].outputs[0].numpy()


class Detached(Caller):
    """Does the same in a separate thread, once `execute` has returned."""

    def execute(self, batch: Batch) -> None:
        (request,) = batch.requests

        def answer() -> None:
            while batch.executing:
                time.sleep(0)
            self.answer(request)

        threading.Thread(target=answer).start()


class WaitsForCancellation(Backend):
    """Waits until the request is cancelled; `began` is set when it waits."""

    began: ClassVar[threading.Event] = threading.Event()

    def execute(self, batch: Batch) -> None:
        (request,) = batch.requests
        self.began.set()
        end = time.monotonic() + WAIT_S
        while not request.cancelled:
            assert time.monotonic() < end, "the request was never cancelled"
            time.sleep(0)
        request.respond(InferResponse.failed(request, Cancelled("the request was cancelled")))


def _meet(folder: Path, name: str) -> None:
    (folder / name).touch()
    end = time.monotonic() + WAIT_S
    while len(list(folder.iterdir())) < 2:
        assert time.monotonic() < end, "the other request never started"
        time.sleep(0)
