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
from .test_stream_call import STREAM, infer_request

CLIENTS, CHANNELS = 1000, 20
MAX_RESPONSES, BYTES = 8, 64 * 2**10
RESPONSE_BYTES = 4 * 2**10
# Keeps the window of an unread stream constant during the measurement.
SMALL_WINDOWS = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 2**16)]
# The byte limit of flow control plus the last response, which may exceed it.
PER_STREAM = BYTES + RESPONSE_BYTES


class Producers:
    """Responds to requests as fast as flow control allows, on the event loop, until they are cancelled."""

    def __init__(self, engine: FakeEngine) -> None:
        self._data = Tensor.from_numpy("OUT", np.zeros(RESPONSE_BYTES, np.uint8))
        self.made: dict[int, int] = {}
        self.requests = engine.held
        self._loop = asyncio.get_running_loop()

    def begin(self, request) -> None:
        self.made[id(request)] = 0
        self._continue(request)

    def _continue(self, request) -> None:
        while request.sink.ready(request) and not request.cancelled:
            self.made[id(request)] += 1
            request.respond(InferResponse([self._data], "decoupled", 1, request.id, final=False))
        if request.cancelled:
            request.respond(InferResponse((), "decoupled", 1, request.id, empty=True))
        else:
            request.sink.when_ready(
                request, lambda: self._loop.call_soon_threadsafe(self._continue, request)
            )


def rss_mib() -> float:
    """Return the memory of this process, which runs server and clients."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def settled(producers: Producers):
    """Return a condition: every producer is blocked, and no response was made since the last check."""
    seen: list[int] = []

    def condition() -> bool:
        made = sum(producers.made.values())
        seen.append(made)
        flow_controls = [request.tag.flow_control for request in producers.requests]
        wait = all(
            2 * flow_control.responses > MAX_RESPONSES or 2 * flow_control.nbytes > BYTES
            for flow_control in flow_controls
        )
        return wait and seen[-2:] == [made] * 2

    return condition


def test_a_thousand_slow_consumers_use_bounded_memory(caplog):
    async def scenario():
        engine = FakeEngine()
        options = {"max_response_pool_size": MAX_RESPONSES, "max_response_pool_bytes": BYTES}
        async with AsyncExitStack() as stack:
            frontend = await stack.enter_async_context(serving(engine, **options))
            producers = Producers(engine)
            before = rss_mib()
            slow = []
            for number in range(CHANNELS):
                channel = grpc.aio.insecure_channel(
                    frontend.address(), [*SMALL_WINDOWS, ("tritonpy.test", number)]
                )
                await stack.enter_async_context(channel)
                call = channel.stream_stream(STREAM.path, ModelInferRequest.SerializeToString)
                slow += [call() for _ in range(CLIENTS // CHANNELS)]
            for call in slow:
                await call.write(infer_request("decoupled"))
            await eventually(lambda: len(engine.held) == CLIENTS)
            for request in engine.held:
                producers.begin(request)
            await eventually(settled(producers))
            flow_controls = [request.tag.flow_control for request in engine.held]
            assert max(flow_control.responses for flow_control in flow_controls) <= MAX_RESPONSES
            assert max(flow_control.nbytes for flow_control in flow_controls) <= PER_STREAM
            await read_with_another_client(stack, frontend, engine, producers)
            assert max(flow_control.responses for flow_control in flow_controls) <= MAX_RESPONSES
            print(
                f"{CLIENTS} streams: {rss_mib() - before:.0f} MiB more, {sum(producers.made.values())} responses made"
            )
            for call in slow:
                call.cancel()
            await eventually(lambda: all(request.finished for request in engine.held[:CLIENTS]))
            await frontend.drain()
            assert caplog.records == []

    run(scenario)


async def read_with_another_client(stack, frontend, engine, producers):
    channel = await stack.enter_async_context(grpc.aio.insecure_channel(frontend.address()))
    open_call = channel.stream_stream(
        STREAM.path, ModelInferRequest.SerializeToString, ModelStreamInferResponse.FromString
    )
    call = open_call()
    await call.write(infer_request("decoupled"))
    await eventually(lambda: len(engine.held) == CLIENTS + 1)
    producers.begin(engine.held[-1])
    for _ in range(10 * MAX_RESPONSES):
        assert not (await call.read()).error_message
    call.cancel()
    await eventually(lambda: engine.held[-1].finished)
