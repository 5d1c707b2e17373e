"""10,000 clients that connect, send half a request and leave, leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
import os
import socket

import numpy as np
import tritonclient.grpc.aio as client

from tritonpy import InferRequest
from tritonpy_frontend_grpc.listening import LISTENERS
from tritonpy_frontend_grpc.stream import Slot, Stream
from tritonpy_frontend_grpc.stream_call import StreamCall

from .fake_engine import PATIENCE_S, FakeEngine, eventually, run, serving
from .frames import HEADERS, HELLO, INFER, PREFACE, STREAM, call, frame, head

COUNT, BATCH = 10_000, 250
IDLE = {
    "tasks": 2 + 2 * LISTENERS
}  # at most: those of the test, and of the server itself; now and then one of them is just being replaced
CLASSES = (InferRequest, StreamCall, Stream, Slot)
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


def soon_told():
    """Return how many descriptors and live tasks there are, on the event loop."""
    return {"descriptors": len(os.listdir("/proc/self/fd")), "tasks": len(asyncio.all_tasks())}


def left_behind():
    """Return the same, and how many objects of calls there are."""
    gc.collect()
    alive = gc.get_objects()
    counts = {kind.__name__: sum(isinstance(each, kind) for each in alive) for kind in CLASSES}
    return {**soon_told(), **counts}


def more(counts, bounds):
    """Return what there is more of than its bound allows: its name, its count and the bound."""
    return [(name, counts[name], bound) for name, bound in bounds.items() if counts[name] > bound]


def leave(port, count):
    """Connect `count` times, send half a request each, and leave: some with a goodbye, some with a reset."""
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


def test_clients_that_leave_in_the_middle_leave_nothing_behind():
    async def scenario():
        async with serving(FakeEngine()) as frontend:
            port = int(frontend.address().rpartition(":")[2])
            await asyncio.to_thread(leave, port, 2 * BATCH)
            await eventually(lambda: not more(soon_told(), IDLE))
            before = left_behind() | IDLE
            await asyncio.to_thread(leave, port, COUNT)
            # the connections end on grpc's own threads, its calls on the loop: some time after their clients are gone, also those of before
            # meanwhile nobody goes through all objects, which holds the loop for longer than a call takes to end
            bounds = {name: before[name] for name in soon_told()}
            await eventually(lambda: not more(soon_told(), bounds), lambda: more(left_behind(), before))
            await eventually(lambda: not more(left_behind(), before), lambda: more(left_behind(), before))
            await asyncio.wait_for(served(frontend.address()), PATIENCE_S)

    run(scenario)


async def served(address):
    """Return when a request of a new client is answered."""
    tensor = client.InferInput("IN", [1], "INT32").set_data_from_numpy(np.array([7], np.int32))
    async with client.InferenceServerClient(address) as connection:
        assert (await connection.infer("identity", [tensor])).as_numpy("IN") == [7]
