"""Bare gRPC echo server on tritonpy's own HTTP/2; `bench.echo` starts it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bench.messages import infer
from tritonpy_frontend_grpc.h2.message_frames import MessageReader, prefix
from tritonpy_frontend_grpc.h2.response_headers import END, START
from tritonpy_http2 import Http2Calls, Http2CallStream, Http2Server, Receiver

INFER = (b":path", b"/inference.GRPCInferenceService/ModelInfer")


class EchoCall(Receiver):
    """Responds to ModelInfer with its inputs and to other methods with an empty message."""

    def __init__(self, stream: Http2CallStream, infers: bool) -> None:
        self._stream = stream
        self._infers = infers
        self._frames = MessageReader()

    def data(self, data: bytes | memoryview, ended: bool) -> None:
        self._frames.feed(bytes(data))
        if not ended:
            return
        frame = self._frames.next()
        response = infer(frame.message) if frame is not None and self._infers else b""
        self._stream.send(START, (prefix(response), response), END)

    def reset(self) -> None:
        """Do nothing; the response is sent immediately."""


class EchoCalls(Http2Calls):
    """Starts echo calls."""

    def begin(
        self, stream: Http2CallStream, headers: Sequence[tuple[bytes, bytes]], ended: bool
    ) -> Receiver:
        call = EchoCall(stream, INFER in headers)
        if ended:
            call.data(b"", ended=True)
        return call

    def refuse(self, stream: Http2CallStream, size: int, limit: int) -> None:
        stream.reset(1)


async def serve(port: int) -> None:
    """Serve until killed."""
    server = Http2Server(EchoCalls())
    await asyncio.get_running_loop().create_server(server.make_protocol, "127.0.0.1", port)
    await asyncio.Event().wait()
