"""Compressed messages: unpacked here, where their size is bounded, and not by grpc, which would unpack whatever comes."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import grpc

from tritonpy import InvalidArgument
from tritonpy_frontend_grpc.telling import Telling, TellingHandlers

PACKED = frozenset({b"\x1f", b"x"})
"""How compressed messages begin: gzip's magic number, and zlib's usual window. No message of the service begins so."""
ALGORITHMS = {
    "none": None,
    "low": grpc.Compression.Gzip,
    "medium": grpc.Compression.Deflate,
    "high": grpc.Compression.Deflate,
}
"""What a level of `infer_response_compression_level` compresses answers with, as in Triton."""
SERVER_ARGUMENTS = [("grpc.per_message_decompression", 0)]
_READ_EITHER = 47  # zlib: 15 bits of window, + 32 reads gzip's frame and zlib's
_INLINE_BELOW = 4 * 1024  # a thread would cost more than the work
SMALL = 64 * 1024
"""How large requests of health and reflection may become, in bytes: they are a few."""


class Packing(NamedTuple):
    """How large a message may become by unpacking, in bytes, and what answers are compressed with."""

    limit: int
    answers: grpc.Compression | None


UNASKED = Packing(64 * 2**20, None)


async def unpacked(raw: bytes, limit: int) -> bytes:
    """Return a message without its compression; one that is not compressed after all comes back as it is.

    Raises InvalidArgument where it is damaged or holds more than `limit` bytes.
    """
    if len(raw) < _INLINE_BELOW:
        return unpack(raw, limit)
    return await asyncio.to_thread(unpack, raw, limit)


def unpack(raw: bytes, limit: int) -> bytes:
    """Do what `unpacked` does, in this thread."""
    if raw[:1] not in PACKED or (raw[:1] == b"x" and int.from_bytes(raw[:2], "big") % 31):
        return raw
    stream = zlib.decompressobj(_READ_EITHER)
    try:
        data = stream.decompress(raw, limit + 1)
    except zlib.error as error:
        raise InvalidArgument(f"failed to decompress the request: {error}") from None
    if len(data) > limit:
        raise InvalidArgument(
            f"Decompressed data size exceeds the maximum allowed value of {limit} bytes. "
            "Use max_decompressed_size under 'frontends: grpc:' to increase the limit."
        )
    if not stream.eof:
        raise InvalidArgument("failed to decompress the request: the compressed data ends too early")
    return data


async def compress(context: grpc.aio.ServicerContext[Any, Any], algorithm: grpc.Compression) -> None:
    """Compress the answers of a call, if its client takes that; before the first one."""
    context.set_compression(algorithm)
    await context.send_initial_metadata(())  # grpc.aio forgets the algorithm where it sends them by itself


class UnpackingServer:
    """Stands for a server where a library adds its services: their requests may be compressed too, and are told of."""

    def __init__(self, server: grpc.aio.Server, telling: Telling) -> None:
        self._server = server
        self._telling = telling

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler[Any, Any]]) -> None:
        """Add handlers of whole services."""
        self._server.add_generic_rpc_handlers(
            [TellingHandlers(_Unpacking(handler), self._telling) for handler in handlers]
        )

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
