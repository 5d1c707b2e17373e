from __future__ import annotations

import contextlib

import grpc
import pytest

from tritonpy.tracing import TraceFamily, Tracer
from tritonpy_protos import METHODS
from tritonpy_protos.grpc_service_pb2 import (
    ModelInferRequest,
    ModelInferResponse,
    ModelStreamInferResponse,
)
from tritonpy_types import TraceLevel

from .fake_engine import FakeEngine, echo, eventually, number, run, serving

INFER, STREAM = (
    next(method for method in METHODS if method.name == name)
    for name in ("ModelInfer", "ModelStreamInfer")
)
WAITED = ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END"]
SENT = ["GRPC_SEND_START", "GRPC_SEND_END"]


class RecordingTracer(Tracer):
    """Traces every request and records the time stamps of ended traces."""

    headers = ("traceparent",)

    def __init__(self):
        self.active = True
        self.sampled = []
        self.open = 0
        self.ended = []

    def sample(self, model_name, headers):
        self.sampled.append((model_name, dict(headers)))
        self.open += 1
        return TraceFamily(TraceLevel.TIMESTAMPS, None, None, lambda _: None, self._ended).trace()

    def _ended(self, family):
        self.open -= 1
        self.ended.append([stamp.name for stamp in family.traces[0].stamps()])


def infer_request(model, raw=b"1234"):
    message = ModelInferRequest(model_name=model, raw_input_contents=[raw])
    message.inputs.add(name="X", datatype="UINT8", shape=[len(raw)])
    return message


def traced(use):
    """Run `use(engine, tracer, infer, stream)` with functions that start unary and streaming calls."""

    async def scenario():
        engine, tracer = FakeEngine(), RecordingTracer()
        async with (
            serving(engine, tracer=tracer) as frontend,
            grpc.aio.insecure_channel(frontend.address()) as channel,
        ):
            infer = channel.unary_unary(
                INFER.path, INFER.request.SerializeToString, ModelInferResponse.FromString
            )
            stream = channel.stream_stream(
                STREAM.path, STREAM.request.SerializeToString, ModelStreamInferResponse.FromString
            )
            await use(engine, tracer, infer, stream)
            await eventually(lambda: not tracer.open)

    run(scenario)


def test_a_call_has_all_time_stamps():
    async def use(engine, tracer, infer, stream):
        await infer(
            infer_request("identity"),
            metadata=(("traceparent", "00-ab"), ("authorization", "secret")),
        )
        await eventually(lambda: tracer.ended)
        assert tracer.ended == [[*WAITED, *SENT]]
        assert tracer.sampled == [("identity", {"traceparent": "00-ab"})]

    traced(use)


@pytest.mark.parametrize("model", ["failing", "broken"])
def test_a_call_that_fails_ends_its_trace(model):
    async def use(engine, tracer, infer, stream):
        with pytest.raises(grpc.aio.AioRpcError):
            await infer(infer_request(model))
        await eventually(lambda: tracer.ended)
        assert tracer.ended[0][:2] == WAITED

    traced(use)


def test_a_disconnect_ends_the_trace():
    async def use(engine, tracer, infer, stream):
        call = infer(infer_request("later"))
        await eventually(lambda: engine.held)
        call.cancel()
        await eventually(lambda: tracer.ended)
        engine.held[0].respond(echo(engine.held[0]))

    traced(use)


def test_each_stream_message_is_stamped_and_the_last_one_ends_the_trace():
    async def use(engine, tracer, infer, stream):
        call = stream()
        await call.write(infer_request("decoupled"))
        await eventually(lambda: engine.held)
        (request,) = engine.held
        for value in range(3):
            request.respond(number(request, value))
            await call.read()
        assert tracer.ended == []
        request.respond(number(request, 3, final=True))
        await call.read()
        await eventually(lambda: tracer.ended)
        assert tracer.ended == [[*WAITED, *(SENT * 4)]]
        call.cancel()

    traced(use)


def test_requests_of_one_stream_have_their_own_traces():
    async def use(engine, tracer, infer, stream):
        call = stream()
        for model in ("identity", "failing", "broken"):
            await call.write(infer_request(model))
            await call.read()
        await eventually(lambda: len(tracer.ended) == 3)
        assert tracer.ended == [[*WAITED, *SENT]] * 3
        call.cancel()

    traced(use)


def test_an_abandoned_stream_ends_the_traces_of_unsent_responses():
    async def use(engine, tracer, infer, stream):
        call = stream()
        await call.write(infer_request("later"))
        await call.write(infer_request("later"))
        await eventually(lambda: len(engine.held) == 2)
        engine.held[1].respond(echo(engine.held[1]))  # waits for the first response
        call.cancel()
        await eventually(lambda: tracer.ended)
        assert tracer.open == 1
        engine.held[0].respond(echo(engine.held[0]))
        await eventually(lambda: len(tracer.ended) == 2)
        assert tracer.ended == [WAITED, WAITED]

    traced(use)


def test_a_stream_that_an_error_ends_ends_its_traces():
    async def use(engine, tracer, infer, stream):
        call = stream(metadata=(("triton_grpc_error", "true"),))
        await call.write(infer_request("failing"))
        with contextlib.suppress(grpc.aio.AioRpcError):
            await call.read()
        assert await call.code() is grpc.StatusCode.INTERNAL
        await eventually(lambda: tracer.ended)

    traced(use)
