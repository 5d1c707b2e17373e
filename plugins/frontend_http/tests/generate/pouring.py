"""A decoupled model that answers as long as there is room, and a server that serves it."""

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
from tritonpy.testing import ModelRepository, RunningServer, running_server

CONFIG = """
    backend: "pouring" model_transaction_policy { decoupled: true }
    input { name: "COUNT" data_type: TYPE_INT64 dims: 1 }
    output [ { name: "INDEX" data_type: TYPE_INT64 dims: 1 }, { name: "PAD" data_type: TYPE_STRING dims: 1 } ]
"""
PAD = Tensor.from_numpy("PAD", np.array([b"x" * 4096], np.object_))
ANSWER_BYTES = PAD.nbytes + 8


class Poured:
    """One request, and how many answers it was given."""

    def __init__(self, request: InferRequest) -> None:
        self.request = request
        self.count = int(request.inputs["COUNT"].numpy()[0])  # negative: without end
        self.given = 0
        self.waits = False  # for room

    def pour(self) -> bool:
        """Answer while there is room; return whether that was all."""
        request = self.request
        while self.given != self.count and not request.cancelled:
            if not request.sink.ready(request):
                return False
            index = Tensor.from_numpy("INDEX", np.array([self.given]))
            request.respond(InferResponse([index, PAD], "pouring", 1, request.id, final=False))
            self.given += 1
        request.respond(InferResponse((), "pouring", 1, request.id, empty=True))
        return True


class Pouring(Backend):
    """Serves all of its requests from one thread, which never waits for one of them."""

    poured: list[Poured]

    def __init__(self, model, instance):
        super().__init__(model, instance)
        self._turns: SimpleQueue[Poured | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._pour)
        self._thread.start()

    def execute(self, batch):
        for request in batch.requests:
            self.poured.append(Poured(request))
            self._turns.put(self.poured[-1])

    def _pour(self):
        while (one := self._turns.get()) is not None:
            one.waits = False
            if not one.pour():
                one.waits = True
                one.request.sink.when_ready(one.request, lambda one=one: self._turns.put(one))

    def close(self):
        self._turns.put(None)
        self._thread.join()


@contextmanager
def pouring_server(folder: Path, **http: Any) -> Iterator[tuple[RunningServer, list[Poured]]]:
    """Serve the model `pouring` over HTTP; the list holds every request that it got."""
    poured: list[Poured] = []
    backend = type("PouringHere", (Pouring,), {"poured": poured})

    class Plugin:
        @staticmethod
        @hookimpl
        def tritonpy_backends():
            return {"pouring": backend}

    ModelRepository(folder).add("pouring", CONFIG)
    config = {"repositories": [{"url": str(folder)}], "frontends": {"http": {"port": 0, **http}}}
    with running_server(config, [tritonpy_frontend_http, Plugin], installed=False) as server:
        yield server, poured
