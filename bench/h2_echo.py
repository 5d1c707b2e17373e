"""The bare gRPC server on HTTP/2 of tritonpy's own, as `bench.echo` starts it: calls that parse and serialise the same messages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bench.messages import infer
from tritonpy_frontend_grpc.options import GrpcOptions
from tritonpy_frontend_grpc.wire.frames import Frames, prefix
from tritonpy_frontend_h2.blocks import END, START
from tritonpy_frontend_h2.http2.calls import Calls, Receiver, Stream
from tritonpy_frontend_h2.listening import listen_on_port
from tritonpy_frontend_h2.server import Http2Server

INFER = (b":path", b"/inference.GRPCInferenceService/ModelInfer")


class EchoCall(Receiver):
    """Answers ModelInfer with its inputs, every other method with an empty message."""

    def __init__(self, stream: Stream, infers: bool) -> None:
        self._stream = stream
        self._infers = infers
        self._frames = Frames()

    def data(self, data: bytes | memoryview, ended: bool) -> None:
        self._frames.feed(bytes(data))
        if not ended:
            return
        frame = self._frames.next()
        answer = infer(frame.message) if frame is not None and self._infers else b""
        self._stream.send(START, (prefix(answer), answer), END)

    def reset(self) -> None:
        """Do nothing: the answer is made at once."""


class EchoCalls(Calls):
    """Begins such calls."""

    def begin(self, stream: Stream, headers: Sequence[tuple[bytes, bytes]], ended: bool) -> Receiver:
        call = EchoCall(stream, INFER in headers)
        if ended:
            call.data(b"", ended=True)
        return call

    def refuse(self, stream: Stream, size: int, limit: int) -> None:
        stream.reset(1)


async def serve(port: int) -> None:
    """Serve until killed."""
    sockets, _ = listen_on_port("127.0.0.1", port, reuse=False)
    await Http2Server(EchoCalls(), GrpcOptions()).serve(sockets)
    await asyncio.Event().wait()
