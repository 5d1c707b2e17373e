"""The server, as a backend in a worker process sees it."""

from __future__ import annotations

from tritonpy.errors import Unsupported
from tritonpy.runners.workers.asked_engine import Ask, AskedEngine
from tritonpy.runners.workers.backend_process.calls import Calls
from tritonpy.types import InferRequest


class RemoteEngine(AskedEngine):
    """`infer` sends and returns, what the server refuses comes back as an answer; the other methods ask and wait."""

    def __init__(self, ask: Ask, calls: Calls) -> None:
        super().__init__(ask)
        self._calls = calls

    def infer(self, request: InferRequest) -> None:
        if request.uses_regions:
            raise Unsupported(
                "a backend in a process of its own hands over tensors, it cannot name regions of shared memory"
            )
        self._calls.make(request)
