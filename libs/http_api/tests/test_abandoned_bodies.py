"""Incomplete requests are freed with their connection, without garbage collection."""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import socket
import tracemalloc

import pytest
import uvloop

from tritonpy.frontend import HttpTlsOptions
from tritonpy_http_api.infer_calls import HttpInferCall
from tritonpy_http_api.infer_cycle import InferCycle
from tritonpy_http_api.protocol import InferProtocol

from .raw_http import INFER, SECONDS, connect, eventually, read_one, request

SIZE, CLIENTS = 2**20, 8
BINARY_BODY = json.dumps(
    {
        "inputs": [
            {
                "name": "X",
                "datatype": "UINT8",
                "shape": [SIZE],
                "parameters": {"binary_data_size": SIZE},
            }
        ]
    }
).encode()
ANNOUNCED = f"content-length: {10 * SIZE}\r\n"
CHUNKED = "transfer-encoding: chunked\r\n"
BINARY = f"inference-header-content-length: {len(BINARY_BODY)}\r\n"
PART = BINARY_BODY + bytes(SIZE)


def head(headers, path=INFER):
    return request(b"", headers, path, length=False)


ABANDONED = {
    "a binary body": head(ANNOUNCED + BINARY) + PART,
    "a JSON body": head(ANNOUNCED) + PART,
    "a compressed body": head(ANNOUNCED + "content-encoding: gzip\r\n") + PART,
    "a chunked body": head(CHUNKED + BINARY) + b"%x\r\n" % (2 * SIZE) + PART,
    "a body behind another request": request() + head(ANNOUNCED + BINARY) + PART,
    "a generate call": head(ANNOUNCED, "/v2/models/echo/generate") + PART,
    "a model to load": head(ANNOUNCED, "/v2/repository/models/echo/load") + PART,
    "log settings": head(ANNOUNCED, "/v2/logging") + PART,
    "trace settings in chunks": head(CHUNKED, "/v2/trace/setting") + b"%x\r\n" % (2 * SIZE) + PART,
    "a region": head(ANNOUNCED, "/v2/systemsharedmemory/region/one/register") + PART,
    "a path that is not there": head(ANNOUNCED, "/nowhere") + PART,
    "a body that is no HTTP": head(CHUNKED + BINARY) + b"%x\r\n" % len(PART) + PART + b"garbage",
}


@contextlib.contextmanager
def nothing_retained(server):
    """Fail if the code inside leaves objects or several bodies to the garbage collector."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        yield
        state = server.frontend._server.server_state
        eventually(lambda: not state.connections and not state.tasks, server)
        eventually(lambda: tracemalloc.get_traced_memory()[0] < 4 * SIZE, server, kept)
        eventually(lambda: not alive(), server, lambda: f"alive: {alive()}")
    finally:
        tracemalloc.stop()
        gc.enable()


def alive():
    kinds = (InferProtocol, InferCycle, HttpInferCall)
    return [type(each).__name__ for each in gc.get_objects() if isinstance(each, kinds)]


def kept():
    return "\n".join(map(str, tracemalloc.take_snapshot().statistics("lineno")[:5]))


def leave(server, sent, wrap=lambda stream: stream, reset=False):
    """Connect, send an incomplete request, and disconnect."""
    stream = wrap(socket.create_connection(("127.0.0.1", server.port), SECONDS))
    with contextlib.suppress(OSError):  # already refused
        stream.sendall(sent)
    if reset:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    stream.close()


@pytest.fixture
def unlogged():
    """Disable logging: pytest would retain the records of refusals."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("loop_factory", [None, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("sent", ABANDONED.values(), ids=ABANDONED)
def test_an_abandoned_body_is_freed(start_server, unlogged, sent, loop_factory):
    server = start_server(loop_factory=loop_factory)
    leave(server, sent)
    server.call("GET", "/v2")  # imports everything that the request needs
    with nothing_retained(server):
        for number in range(CLIENTS):
            leave(server, sent, reset=number % 3 == 0)


@pytest.mark.parametrize("loop_factory", [None, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_an_abandoned_body_is_freed_with_tls(start_server, pem, unlogged, loop_factory):
    names = ("certificate_file", "key_file")
    server = start_server(
        loop_factory=loop_factory, tls=HttpTlsOptions(**{name: pem.options[name] for name in names})
    )
    context = pem.context()

    def wrap(stream):
        return context.wrap_socket(stream, server_hostname="localhost")

    leave(server, ABANDONED["a binary body"], wrap)
    with nothing_retained(server):
        for _ in range(CLIENTS):
            leave(server, ABANDONED["a binary body"], wrap)


def test_a_disconnect_during_inference_retains_no_memory(start_server, engine, unlogged):
    server = start_server()
    engine.hold = True
    with nothing_retained(server):
        for _ in range(CLIENTS):
            with connect(server) as raw:
                raw.sendall(head(f"content-length: {len(PART)}\r\n" + BINARY) + PART)
                assert engine.arrived.wait(SECONDS)
                engine.arrived.clear()
        eventually(lambda: not server.frontend._server.server_state.connections, server)
        engine.release()
        engine.requests.clear()


def test_a_closed_connection_retains_no_memory(start_server, engine, unlogged):
    server = start_server()
    with nothing_retained(server):
        for _ in range(CLIENTS):
            with connect(server) as raw:
                raw.sendall(request() * 2)
                assert [read_one(raw)[0] for _ in range(2)] == [200, 200]
        engine.requests.clear()
