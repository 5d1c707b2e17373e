"""10,000 clients that connect, send half a request and disconnect, leak nothing."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import ssl
import sys
import time

import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from tritonpy.frontend import HttpTlsOptions
from tritonpy_http1.connection import LingeringClose
from tritonpy_http_api.infer_calls import HttpInferCall
from tritonpy_http_api.infer_cycle import InferCycle
from tritonpy_http_api.protocol import InferProtocol

from .raw_http import BODY, INFER, SECONDS, RawConnection, eventually, read_one, request

BATCH = 250
CLASSES = (
    InferProtocol,
    InferCycle,
    HttpInferCall,
    LingeringClose,
    RequestResponseCycle,
    asyncio.Task,
    ssl.SSLObject,
)
HALVES = [
    b"",
    b"PO",
    request()[:40],
    request()[:-5],
    request() + request()[:-5],
    request(path="/v2/repository/index", body=b"{}")[:-1],
    f"POST {INFER} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabc".encode(),
    request(headers="content-encoding: gzip\r\n")[:-5],
    request(headers="expect: 100-continue\r\n")[: -len(BODY)],
    b"garbage\r\n\r\n",
]


def count_leftovers(server, wrap):
    """Return the counts of descriptors and of connection objects and tasks, and the allocated blocks."""
    with RawConnection(wrap(socket.create_connection(("127.0.0.1", server.port), SECONDS))) as raw:
        raw.sendall(request())  # with its response, the server has processed all earlier input
        assert read_one(raw)[0] == 200
    state = server.frontend._server.server_state
    eventually(lambda: not state.connections and not state.tasks, server)
    server.engine.requests.clear()
    gc.collect()
    alive = gc.get_objects()
    counts = {kind.__name__: sum(isinstance(each, kind) for each in alive) for kind in CLASSES}
    del alive
    return {"descriptors": len(os.listdir("/proc/self/fd")), **counts}, sys.getallocatedblocks()


def more(counts, bounds):
    """Return name, count and bound of every count above its bound."""
    return [(name, counts[name], bound) for name, bound in bounds.items() if counts[name] > bound]


def leave(server, count, wrap=lambda stream: stream):
    """Connect `count` times, send half a request each, and disconnect, some with a reset."""
    for start in range(0, count, BATCH):
        streams = []
        for number in range(start, start + BATCH):
            stream = wrap(socket.create_connection(("127.0.0.1", server.port), SECONDS))
            stream.sendall(HALVES[number % len(HALVES)])
            if number % 3 == 0:
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            streams.append(stream)
        for stream in streams:
            stream.close()
        eventually(lambda: len(server.frontend._server.server_state.connections) < BATCH, server)


@pytest.mark.parametrize(("encrypted", "count"), [(False, 10_000), (True, 1_000)])
def test_disconnecting_clients_leak_nothing(start_server, engine, pem, caplog, encrypted, count):
    caplog.set_level(logging.CRITICAL, "uvicorn.error")  # pytest retains log records in memory
    names = ("certificate_file", "key_file")
    options = (
        HttpTlsOptions(**{name: pem.options[name] for name in names})
        if encrypted
        else HttpTlsOptions()
    )
    server = start_server(tls=options)
    context = pem.context()
    wrap = (
        (lambda stream: context.wrap_socket(stream, server_hostname="localhost"))
        if encrypted
        else lambda stream: stream
    )
    leave(server, 2 * BATCH, wrap)
    before, blocks = count_leftovers(server, wrap)
    leave(server, count, wrap)
    until = time.monotonic() + SECONDS
    while more((counted := count_leftovers(server, wrap))[0], before) and time.monotonic() < until:
        pass  # connections may still be closing on the server's loop
    after, blocks_after = counted
    assert not more(after, before)
    assert blocks_after - blocks < count // 10, "memory grows with the number of clients"
    with RawConnection(wrap(socket.create_connection(("127.0.0.1", server.port), SECONDS))) as raw:
        raw.sendall(request())
        assert read_one(raw)[0] == 200
