"""Compressed messages on grpc.aio: it is told to leave them as they are, because it would unpack whatever comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import grpc

from tritonpy_frontend_grpc.telling import Telling, TellingHandlers
from tritonpy_frontend_grpc.unpacking import LIMIT, SMALL, unpack

ALGORITHMS = {
    "none": None,
    "low": grpc.Compression.Gzip,
    "medium": grpc.Compression.Deflate,
    "high": grpc.Compression.Deflate,
}
"""What a level of `infer_response_compression_level` compresses answers with, as in Triton."""
SERVER_ARGUMENTS = [("grpc.per_message_decompression", 0)]


class Packing(NamedTuple):
    """How large a message may become by unpacking, in bytes, and what answers are compressed with."""

    limit: int
    answers: grpc.Compression | None


UNASKED = Packing(LIMIT, None)


async def compress(context: grpc.aio.ServicerContext[Any, Any], algorithm: grpc.Compression) -> None:
    """Compress the answers of a call, if its client takes that; before the first one."""
    context.set_compression(algorithm)
    await context.send_initial_metadata(())  # grpc.aio forgets the algorithm where it sends them by itself


class UnpackingHandlers:
    """Stands for a server where a library adds its services: their requests may be compressed too, and are told of.

    `added` are the handlers for the servers to have.
    """

    def __init__(self, telling: Telling) -> None:
        self.added: list[grpc.GenericRpcHandler[Any, Any]] = []
        self._telling = telling

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler[Any, Any]]) -> None:
        """Add handlers of whole services."""
        self.added += [TellingHandlers(_Unpacking(handler), self._telling) for handler in handlers]

    def add_registered_method_handlers(self, service: str, handlers: dict[str, Any]) -> None:
        """Take no note: the same methods come as generic handlers, and grpc.aio knows no others."""


class _Unpacking(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in its types alone
    def __init__(self, handler: grpc.GenericRpcHandler[Any, Any]) -> None:
        self._handler = handler

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        found: Any = self._handler.service(handler_call_details)
        if found is None:
            return None
        read = found.request_deserializer
        return found._replace(request_deserializer=lambda raw: read(unpack(raw, SMALL)))
