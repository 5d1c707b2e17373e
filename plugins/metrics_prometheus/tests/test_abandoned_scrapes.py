"""Requests that clients abandon halfway are freed with their connection."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import tracemalloc

import pytest
import uvloop
from uvicorn.protocols.http.flow_control import FlowControl

from .test_frontend import listening

SIZE, CLIENTS = 256 * 1024, 16
ABANDONED = {
    "half a head": b"GET /metrics HTTP/1.1\r\nhost: x\r\nlong: "
    + bytes(32).replace(b"\0", b"x" * 1000),
    "a body": b"POST /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\n\r\n"
    + bytes(SIZE),
    "a scrape": b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n",
    "a scrape with a body": b"GET /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\n\r\n"
    + bytes(SIZE),
}


def abandon(port, sent):
    with socket.create_connection(("127.0.0.1", port), 30) as stream, contextlib.suppress(OSError):
        stream.sendall(sent)


def alive():
    return {id(each) for each in gc.get_objects() if isinstance(each, FlowControl)}


@pytest.mark.parametrize("loop_factory", [None, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("sent", ABANDONED.values(), ids=ABANDONED)
def test_an_abandoned_scrape_is_freed(engine, sent, loop_factory):
    async def scenario():
        async with listening(engine, cpu=False) as frontend:
            port = int(frontend.address().rpartition(":")[2])
            await asyncio.to_thread(abandon, port, sent)
            gc.collect()
            before = alive()  # objects left by other tests
            gc.disable()
            tracemalloc.start()
            try:
                for _ in range(CLIENTS):
                    await asyncio.to_thread(abandon, port, sent)
                while alive() - before or tracemalloc.get_traced_memory()[0] > 2 * SIZE:  # noqa: ASYNC110 - it has no event
                    await asyncio.sleep(0.01)
            finally:
                tracemalloc.stop()
                gc.enable()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(asyncio.wait_for(scenario(), 20))
