"""The server's engine for a backend in a worker process."""

from __future__ import annotations

from tritonpy import InferRequest, Unsupported
from tritonpy_engine_rpc.engine import RpcCall, RpcEngine
from tritonpy_workers.backend_process.calls import RemoteCalls


class RemoteEngine(RpcEngine):
    """Sends requests and RPC calls to the server.

    `infer` does not wait: refusals are delivered as responses. Other methods wait for the result.
    """

    def __init__(self, call: RpcCall, calls: RemoteCalls) -> None:
        super().__init__(call)
        self._calls = calls

    def infer(self, request: InferRequest) -> None:
        if request.uses_regions:
            raise Unsupported(
                "a backend in its own process sends tensors; it cannot refer to shared memory "
                "regions"
            )
        self._calls.make(request)
