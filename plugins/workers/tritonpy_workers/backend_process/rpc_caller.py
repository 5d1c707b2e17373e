"""RPC calls from a backend to the server."""

from __future__ import annotations

from typing import Any

from tritonpy import error_of
from tritonpy_engine_rpc.engine import RpcCall
from tritonpy_ipc.rpc_client import RpcClient


def rpc_caller(rpc_client: RpcClient) -> RpcCall:
    """Return a function that calls a verb with keyword arguments and returns the value.

    It raises the `TritonError` of the server.
    """

    def call(verb: str, **arguments: Any) -> Any:
        result = rpc_client.call(verb, arguments).extras
        if "error" in result:
            raise error_of(*result["error"])
        return result["value"]

    return call
