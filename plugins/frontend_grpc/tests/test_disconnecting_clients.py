"""10,000 clients that connect, send half a request and disconnect, leak nothing."""

from __future__ import annotations

import asyncio
import gc
import os
import socket

import numpy as np
import tritonclient.grpc.aio as client

from tritonpy import InferRequest
from tritonpy_frontend_grpc.grpcio.listeners import LISTENERS
from tritonpy_frontend_grpc.stream import InferStream, StreamEntry
from tritonpy_frontend_grpc.stream_call import StreamCall

from .fake_engine import WAIT_S, FakeEngine, eventually, run, serving
from .frames import HEADERS, HELLO, INFER, PREFACE, STREAM, call, frame, head

COUNT, BATCH = 10_000, 250
IDLE = {
    "tasks": 2 + 2 * LISTENERS
}  # upper bound: tasks of the test and the server, of which one may be restarting
CLASSES = (InferRequest, StreamCall, InferStream, StreamEntry)
MESSAGE = b"\0\0\0\0\x10" + bytes(16)
HALVES = [
    b"",
    PREFACE[:9],
    PREFACE,
    HELLO,
    HELLO + frame(HEADERS, 0, 1, head(INFER))[:20],
    HELLO + frame(HEADERS, 0, 1, head(INFER)),
    call(INFER),
    call(INFER, MESSAGE[:9]),
    call(STREAM, MESSAGE[:9]),
    call(INFER, b"\1" + MESSAGE[1:9], [("grpc-encoding", "gzip")]),
]


def count_quickly():
    """Return the counts of descriptors and tasks. Runs on the event loop."""
    return {"descriptors": len(os.listdir("/proc/self/fd")), "tasks": len(asyncio.all_tasks())}


def count_leftovers():
    """Return the counts of descriptors, tasks and call objects."""
    gc.collect()
    alive = gc.get_objects()
    counts = {kind.__name__: sum(isinstance(each, kind) for each in alive) for kind in CLASSES}
    return {**count_quickly(), **counts}


def more(counts, bounds):
    """Return name, count and bound of every count above its bound."""
    return [(name, counts[name], bound) for name, bound in bounds.items() if counts[name] > bound]


def leave(port, count):
    """Connect `count` times, send half a request each, and disconnect, some with a reset."""
    for start in range(0, count, BATCH):
        streams = []
        for number in range(start, start + BATCH):
            stream = socket.create_connection(("127.0.0.1", port), 30)
            stream.sendall(HALVES[number % len(HALVES)])
            if number % 3 == 0:
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            streams.append(stream)
        for stream in streams:
            stream.close()


def test_disconnecting_clients_leak_nothing():
    async def scenario():
        async with serving(FakeEngine()) as frontend:
            port = int(frontend.address().rpartition(":")[2])
            await asyncio.to_thread(leave, port, 2 * BATCH)
            await eventually(lambda: not more(count_quickly(), IDLE))
            before = count_leftovers() | IDLE
            await asyncio.to_thread(leave, port, COUNT)
            # Connections end on the threads of grpc, and calls on the loop, some time after the disconnect.
            # Objects are counted only while the quick counts are low: that blocks the loop for longer
            # than a call takes to end.
            bounds = {name: before[name] for name in count_quickly()}
            await eventually(
                lambda: not more(count_quickly(), bounds) and not more(count_leftovers(), before),
                lambda: more(count_leftovers(), before),
            )
            await asyncio.wait_for(served(frontend.address()), WAIT_S)

    run(scenario)


async def served(address):
    """Serve one request of a new client."""
    tensor = client.InferInput("IN", [1], "INT32").set_data_from_numpy(np.array([7], np.int32))
    async with client.InferenceServerClient(address) as connection:
        assert (await connection.infer("identity", [tensor])).as_numpy("IN") == [7]
