"""A decoupled backend: it sends 0..n responses from a separate thread, after `execute` returned."""

from __future__ import annotations

import queue
import threading

import numpy as np

from tritonpy.api.backend import Backend
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy_types import Batch, InferRequest, InferResponse, Tensor


class Repeat(Backend):
    """Sends IN responses: OUT = 0, 1, … n-1, then an empty final one."""

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self.executing = False
        self._requests: queue.SimpleQueue[InferRequest | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="repeat")
        self._thread.start()

    def execute(self, batch: Batch) -> None:
        batch.stamp()
        for request in batch.requests:
            self._requests.put(request)

    def close(self) -> None:
        self._requests.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (request := self._requests.get()) is not None:
            model = self.model
            for number in range(int(request.inputs["IN"].numpy()[0])):
                out = Tensor.from_numpy("OUT", np.array([number], np.int32))
                request.respond(
                    InferResponse([out], model.name, model.version, request.id, final=False)
                )
            request.respond(InferResponse((), model.name, model.version, request.id, empty=True))
