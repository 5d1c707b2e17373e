"""Incomplete calls are freed with their connection, without garbage collection."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import ssl
import tracemalloc

import numpy as np
import pytest
import trustme
import uvloop

from tritonpy import Cancelled, InferRequest, InferResponse
from tritonpy.frontend import TlsOptions
from tritonpy_frontend_grpc.h2.h2_call import H2Call
from tritonpy_frontend_grpc.stream import InferStream, StreamEntry
from tritonpy_frontend_grpc.stream_call import StreamCall
from tritonpy_http2.connection import ServerConnection
from tritonpy_http2.server import Http2Protocol
from tritonpy_http2.server_stream import ServerStream
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest

from .fake_engine import WAIT_S, FakeEngine, eventually, serving
from .frames import DATA, HEADERS, HELLO, INFER, STREAM, frame, head
from .test_disconnecting_clients import IDLE

SIZE, CLIENTS = 2**20, 8
KINDS = (
    InferRequest,
    H2Call,
    StreamCall,
    InferStream,
    StreamEntry,
    ServerStream,
    ServerConnection,
    Http2Protocol,
)
LOAD = "/inference.GRPCInferenceService/RepositoryModelLoad"
GZIP = [("grpc-encoding", "gzip")]


def announced(flag=0):
    """Return the prefix of a message of 10 MiB."""
    return bytes((flag,)) + (10 * SIZE).to_bytes(4, "big")


def message(model, size):
    """Return a complete inference message with its prefix."""
    infer_request = ModelInferRequest(
        model_name=model, raw_input_contents=[np.zeros(size, np.uint8).tobytes()]
    )
    infer_request.inputs.add(name="IN", datatype="UINT8", shape=[size])
    raw = infer_request.SerializeToString()
    return b"\0" + len(raw).to_bytes(4, "big") + raw


def data(stream, body, ends=0):
    """Return DATA frames of the default maximum size."""
    parts = [body[at : at + 16384] for at in range(0, len(body), 16384)]
    return b"".join(frame(DATA, ends if part is parts[-1] else 0, stream, part) for part in parts)


def begun(path, body, more=(), streams=1):
    """Return the frames of incomplete calls."""
    return HELLO + b"".join(
        frame(HEADERS, 4, 2 * number + 1, head(path, more)) + data(2 * number + 1, body)
        for number in range(streams)
    )


ABANDONED = {
    "a message": begun(INFER, announced() + bytes(SIZE)),
    "several messages": begun(INFER, announced() + bytes(SIZE // 4), streams=4),
    "a compressed message": begun(INFER, announced(1) + bytes(SIZE), GZIP),
    "a message of a stream": begun(STREAM, announced() + bytes(SIZE)),
    "a model to load": begun(LOAD, announced() + bytes(SIZE)),
    "a request behind an open one": begun(STREAM, message("later", 1) + announced() + bytes(SIZE)),
    "a request that is being computed": begun(INFER, message("later", SIZE)),
    "a request of a stream that is being computed": begun(STREAM, message("later", SIZE)),
    "a path that is not there": begun("/nowhere", announced() + bytes(SIZE)),
    "an answer that is not read": begun(INFER, message("identity", SIZE)),
    "answers of a stream that are not read": begun(STREAM, message("identity", SIZE)),
    "a header block": HELLO
    + frame(HEADERS, 0, 1, bytes(16384))
    + frame(9, 0, 1, bytes(16384)) * 12,
}


class ReleasingEngine(FakeEngine):
    """An engine that can respond to cancelled requests."""

    def respond_to_cancelled(self):
        """Respond to cancelled requests, as models do."""
        for request in list(self.held):
            if request.cancelled:
                self.held.remove(request)
                request.respond(InferResponse.failed(request, Cancelled("Request cancelled")))


def alive():
    return {id(each): type(each).__name__ for each in gc.get_objects() if isinstance(each, KINDS)}


@contextlib.asynccontextmanager
async def nothing_retained(engine):
    """Fail if the code inside leaves objects or several messages to the garbage collector."""

    def left():
        return [name for number, name in alive().items() if number not in before]

    def freed():
        engine.respond_to_cancelled()
        return tracemalloc.get_traced_memory()[0] < 3 * SIZE and not left()

    def kept():
        return "\n".join(map(str, [*tracemalloc.take_snapshot().statistics("lineno")[:5], left()]))

    gc.collect()
    before = alive()  # objects of other test modules
    gc.disable()
    tracemalloc.start()
    try:
        yield
        await eventually(freed, kept)
    finally:
        tracemalloc.stop()
        gc.enable()


def leave(port, sent, reset=False, wrap=lambda stream: stream):
    """Connect, send an incomplete call, and disconnect."""
    with wrap(socket.create_connection(("127.0.0.1", port), WAIT_S)) as stream:
        with contextlib.suppress(OSError):  # already refused
            stream.sendall(sent)
        stream.recv(1)
        if reset:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


LOOPS = pytest.mark.parametrize(
    "loop_factory", [None, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


@LOOPS
@pytest.mark.parametrize("sent", ABANDONED.values(), ids=ABANDONED)
def test_an_abandoned_call_is_freed(sent, loop_factory):
    async def scenario():
        engine = ReleasingEngine()
        async with serving(engine) as frontend:
            port = int(frontend.address().rpartition(":")[2])
            await asyncio.to_thread(leave, port, sent)
            await eventually(lambda: len(asyncio.all_tasks()) <= IDLE["tasks"])
            async with nothing_retained(engine):
                for number in range(CLIENTS):
                    await asyncio.to_thread(leave, port, sent, number % 3 == 0)

    run_on(loop_factory, scenario)


@LOOPS
def test_an_abandoned_call_is_freed_behind_encryption(tmp_path, loop_factory):
    authority = trustme.CA()
    files = authority.issue_cert("localhost").private_key_and_cert_chain_pem
    files.write_to_path(tmp_path / "server.pem")
    options = TlsOptions(
        certificate_file=str(tmp_path / "server.pem"), key_file=str(tmp_path / "server.pem")
    )
    context = ssl.create_default_context()
    authority.configure_trust(context)
    context.set_alpn_protocols(["h2"])

    async def scenario():
        engine = ReleasingEngine()
        async with serving(engine, tls=options) as frontend:
            port = int(frontend.address().rpartition(":")[2])

            def left():
                leave(
                    port,
                    ABANDONED["a message"],
                    wrap=lambda each: context.wrap_socket(each, server_hostname="localhost"),
                )

            await asyncio.to_thread(left)
            async with nothing_retained(engine):
                for _ in range(CLIENTS):
                    await asyncio.to_thread(left)

    run_on(loop_factory, scenario)


def run_on(loop_factory, scenario):
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(asyncio.wait_for(scenario(), 3 * WAIT_S))
