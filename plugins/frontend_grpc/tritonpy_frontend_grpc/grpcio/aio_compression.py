"""Compressed messages on grpc.aio.

Its own decompression is disabled, because that has no size limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import grpc

from tritonpy_frontend_grpc.decompression import LIMIT, SMALL_LIMIT, decompress
from tritonpy_frontend_grpc.grpcio.request_log import LoggedHandlers, RequestLog

ALGORITHMS = {
    "none": None,
    "low": grpc.Compression.Gzip,
    "medium": grpc.Compression.Deflate,
    "high": grpc.Compression.Deflate,
}
"""The algorithm for each `infer_response_compression_level`, as in Triton."""
SERVER_ARGUMENTS = [("grpc.per_message_decompression", 0)]


class CompressionSettings(NamedTuple):
    """The limit of a decompressed message in bytes, and the algorithm for responses."""

    limit: int
    response_algorithm: grpc.Compression | None


NO_COMPRESSION = CompressionSettings(LIMIT, None)


async def compress(
    context: grpc.aio.ServicerContext[Any, Any], algorithm: grpc.Compression
) -> None:
    """Compress the responses of a call if its client accepts that.

    Call it before the first response.
    """
    context.set_compression(algorithm)
    # grpc.aio ignores the algorithm if it sends the initial metadata itself.
    await context.send_initial_metadata(())


class HandlerCollector:
    """Collects the handlers that a library adds, with decompression and request logging.

    It replaces the server in the library's registration functions. `added` are the handlers.
    """

    def __init__(self, request_log: RequestLog) -> None:
        self.added: list[grpc.GenericRpcHandler[Any, Any]] = []
        self._request_log = request_log

    def add_generic_rpc_handlers(
        self, handlers: Sequence[grpc.GenericRpcHandler[Any, Any]]
    ) -> None:
        """Add handlers of complete services."""
        self.added += [
            LoggedHandlers(_DecompressingHandler(handler), self._request_log)
            for handler in handlers
        ]

    def add_registered_method_handlers(self, service: str, handlers: dict[str, Any]) -> None:
        """Do nothing.

        The same methods are also added as generic handlers, the only kind in grpc.aio.
        """


class _DecompressingHandler(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in its types alone
    def __init__(self, handler: grpc.GenericRpcHandler[Any, Any]) -> None:
        self._handler = handler

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        found: Any = self._handler.service(handler_call_details)
        if found is None:
            return None
        read = found.request_deserializer
        return found._replace(request_deserializer=lambda raw: read(decompress(raw, SMALL_LIMIT)))
