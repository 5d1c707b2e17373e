"""A decoupled model that responds as long as flow control allows it, and a server for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

import tritonpy_frontend_http
from tritonpy import Backend, InferRequest, InferResponse, Tensor, hookimpl
from tritonpy_testing import ModelRepository, RunningServer, running_server

CONFIG = """
    backend: "endless" model_transaction_policy { decoupled: true }
    input { name: "COUNT" data_type: TYPE_INT64 dims: 1 }
    output [ { name: "INDEX" data_type: TYPE_INT64 dims: 1 }, { name: "PAD" data_type: TYPE_STRING dims: 1 } ]
"""
PAD = Tensor.from_numpy("PAD", np.array([b"x" * 4096], np.object_))
RESPONSE_BYTES = PAD.nbytes + 8


class EndlessRequest:
    """One request and its number of responses."""

    def __init__(self, request: InferRequest) -> None:
        self.request = request
        self.count = int(request.inputs["COUNT"].numpy()[0])  # negative: endless
        self.sent = 0
        self.is_waiting = False  # for flow control

    def send_responses(self) -> bool:
        """Respond while flow control allows it; return whether all responses were sent."""
        request = self.request
        while self.sent != self.count and not request.cancelled:
            if not request.sink.ready(request):
                return False
            index = Tensor.from_numpy("INDEX", np.array([self.sent]))
            request.respond(InferResponse([index, PAD], "endless", 1, request.id, final=False))
            self.sent += 1
        request.respond(InferResponse((), "endless", 1, request.id, empty=True))
        return True


class EndlessBackend(Backend):
    """Serves all requests from one thread that never blocks."""

    served: list[EndlessRequest]

    def __init__(self, model, instance):
        super().__init__(model, instance)
        self._queue: SimpleQueue[EndlessRequest | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def execute(self, batch):
        for request in batch.requests:
            self.served.append(EndlessRequest(request))
            self._queue.put(self.served[-1])

    def _run(self):
        while (one := self._queue.get()) is not None:
            one.is_waiting = False
            if not one.send_responses():
                one.is_waiting = True
                one.request.sink.when_ready(one.request, lambda one=one: self._queue.put(one))

    def close(self):
        self._queue.put(None)
        self._thread.join()


@contextmanager
def endless_server(
    folder: Path, **http: Any
) -> Iterator[tuple[RunningServer, list[EndlessRequest]]]:
    """Serve the model `endless` over HTTP; the list contains all of its requests."""
    served: list[EndlessRequest] = []
    backend = type("BoundEndlessBackend", (EndlessBackend,), {"served": served})

    class Plugin:
        @staticmethod
        @hookimpl
        def tritonpy_backends():
            return {"endless": backend}

    ModelRepository(folder).add("endless", CONFIG)
    config = {"repositories": [{"url": str(folder)}], "frontends": {"http": {"port": 0, **http}}}
    with running_server(config, [tritonpy_frontend_http, Plugin], installed=False) as server:
        yield server, served
