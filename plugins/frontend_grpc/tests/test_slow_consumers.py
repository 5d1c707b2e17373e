"""A thousand clients that open a stream and do not read it."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack

import grpc
import numpy as np

from tritonpy import InferResponse, Tensor
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest, ModelStreamInferResponse

from .fake_engine import FakeEngine, eventually, run, serving
from .test_stream_call import STREAM, asked

CLIENTS, CHANNELS = 1000, 20
ANSWERS, BYTES = 8, 64 * 2**10
ANSWER = 4 * 2**10
# What a connection takes of a stream that nobody reads must not grow while it is measured.
SMALL_WINDOWS = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 2**16)]
# Beside what waits in its room, a stream has one answer that went in as the last, and what the connection takes of it.
PER_STREAM = BYTES + ANSWER


class Producers:
    """Answers every request of an engine as fast as its room allows, on the event loop, until it is cancelled."""

    def __init__(self, engine: FakeEngine) -> None:
        self._data = Tensor.from_numpy("OUT", np.zeros(ANSWER, np.uint8))
        self.made: dict[int, int] = {}
        self.requests = engine.held
        self._loop = asyncio.get_running_loop()

    def begin(self, request) -> None:
        self.made[id(request)] = 0
        self._go_on(request)

    def _go_on(self, request) -> None:
        while request.sink.ready(request) and not request.cancelled:
            self.made[id(request)] += 1
            request.respond(InferResponse([self._data], "decoupled", 1, request.id, final=False))
        if request.cancelled:
            request.respond(InferResponse((), "decoupled", 1, request.id, empty=True))
        else:
            request.sink.when_ready(request, lambda: self._loop.call_soon_threadsafe(self._go_on, request))


def rss_mib() -> float:
    """Return the memory of this process, which is server and clients at once."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def settled(producers: Producers):
    """Return a condition: every producer waits for half of its room, and none made anything since it was last asked."""
    seen: list[int] = []

    def condition() -> bool:
        made = sum(producers.made.values())
        seen.append(made)
        rooms = [request.tag.room for request in producers.requests]
        wait = all(2 * room.answers > ANSWERS or 2 * room.nbytes > BYTES for room in rooms)
        return wait and seen[-2:] == [made] * 2

    return condition


def test_a_thousand_of_them_hold_what_their_rooms_hold_and_no_other_client(caplog):
    async def scenario():
        engine = FakeEngine()
        options = {"max_response_pool_size": ANSWERS, "max_response_pool_bytes": BYTES}
        async with AsyncExitStack() as stack:
            frontend = await stack.enter_async_context(serving(engine, **options))
            producers = Producers(engine)
            before = rss_mib()
            slow = []
            for number in range(CHANNELS):
                channel = grpc.aio.insecure_channel(frontend.address(), [*SMALL_WINDOWS, ("tritonpy.test", number)])
                await stack.enter_async_context(channel)
                call = channel.stream_stream(STREAM.path, ModelInferRequest.SerializeToString)
                slow += [call() for _ in range(CLIENTS // CHANNELS)]
            for call in slow:
                await call.write(asked("decoupled"))
            await eventually(lambda: len(engine.held) == CLIENTS)
            for request in engine.held:
                producers.begin(request)
            await eventually(settled(producers))
            rooms = [request.tag.room for request in engine.held]
            assert max(room.answers for room in rooms) <= ANSWERS
            assert max(room.nbytes for room in rooms) <= PER_STREAM
            await one_that_reads(stack, frontend, engine, producers)
            assert max(room.answers for room in rooms) <= ANSWERS
            print(f"{CLIENTS} streams: {rss_mib() - before:.0f} MiB more, {sum(producers.made.values())} answers made")
            for call in slow:
                call.cancel()
            await eventually(lambda: all(request.answered for request in engine.held[:CLIENTS]))
            await frontend.drain()
            assert caplog.records == []

    run(scenario)


async def one_that_reads(stack, frontend, engine, producers):
    channel = await stack.enter_async_context(grpc.aio.insecure_channel(frontend.address()))
    open_call = channel.stream_stream(
        STREAM.path, ModelInferRequest.SerializeToString, ModelStreamInferResponse.FromString
    )
    call = open_call()
    await call.write(asked("decoupled"))
    await eventually(lambda: len(engine.held) == CLIENTS + 1)
    producers.begin(engine.held[-1])
    for _ in range(10 * ANSWERS):
        assert not (await call.read()).error_message
    call.cancel()
    await eventually(lambda: engine.held[-1].answered)
