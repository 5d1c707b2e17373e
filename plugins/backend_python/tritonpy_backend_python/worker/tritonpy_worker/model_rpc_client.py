"""Queries to the server, whose errors become exceptions of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .api.errors import TritonModelException
from .ipc import Frame, rpc_client


class ModelRpcClient(rpc_client.RpcClient):
    """Sends queries and waits, from any thread."""

    def call(
        self, verb: str, arguments: Mapping[str, Any], descriptors: Sequence[int] = ()
    ) -> Frame:
        """Return the reply, whose descriptors belong to the caller.

        Raises `TritonModelException` with the server's reason, and `ChannelClosed`.
        """
        reply = super().call(verb, arguments, descriptors)
        error = reply.extras.get("error")
        if error is not None:
            raise TritonModelException(error[1])
        return reply
