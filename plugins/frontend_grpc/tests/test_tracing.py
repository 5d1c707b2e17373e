from __future__ import annotations

import contextlib

import grpc
import pytest

from tritonpy import TraceFamily, Tracer
from tritonpy.types import TraceLevel
from tritonpy_protos import METHODS
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest, ModelInferResponse, ModelStreamInferResponse

from .fake_engine import FakeEngine, echo, eventually, number, run, serving

INFER, STREAM = (
    next(method for method in METHODS if method.name == name) for name in ("ModelInfer", "ModelStreamInfer")
)
WAITED = ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END"]
SENT = ["GRPC_SEND_START", "GRPC_SEND_END"]


class Noting(Tracer):
    """Traces every request and keeps the time stamps of those that ended."""

    headers = ("traceparent",)

    def __init__(self):
        self.active = True
        self.asked = []
        self.open = 0
        self.ended = []

    def sample(self, model_name, headers):
        self.asked.append((model_name, dict(headers)))
        self.open += 1
        return TraceFamily(TraceLevel.TIMESTAMPS, None, None, lambda _: None, self._ended).trace()

    def _ended(self, family):
        self.open -= 1
        self.ended.append([stamp.name for stamp in family.traces[0].stamps()])


def asked(model, raw=b"1234"):
    message = ModelInferRequest(model_name=model, raw_input_contents=[raw])
    message.inputs.add(name="X", datatype="UINT8", shape=[len(raw)])
    return message


def traced(use):
    """Run `use(engine, tracer, infer, stream)`: what is called for one answer, and for a stream."""

    async def scenario():
        engine, tracer = FakeEngine(), Noting()
        async with serving(engine, tracer=tracer) as frontend, grpc.aio.insecure_channel(frontend.address()) as channel:
            infer = channel.unary_unary(INFER.path, INFER.request.SerializeToString, ModelInferResponse.FromString)
            stream = channel.stream_stream(
                STREAM.path, STREAM.request.SerializeToString, ModelStreamInferResponse.FromString
            )
            await use(engine, tracer, infer, stream)
            await eventually(lambda: not tracer.open)

    run(scenario)


def test_a_call_notes_when_it_came_and_went():
    async def use(engine, tracer, infer, stream):
        await infer(asked("identity"), metadata=(("traceparent", "00-ab"), ("authorization", "secret")))
        await eventually(lambda: tracer.ended)
        assert tracer.ended == [[*WAITED, *SENT]]
        assert tracer.asked == [("identity", {"traceparent": "00-ab"})]

    traced(use)


@pytest.mark.parametrize("model", ["failing", "broken"])
def test_a_call_that_fails_ends_its_trace(model):
    async def use(engine, tracer, infer, stream):
        with pytest.raises(grpc.aio.AioRpcError):
            await infer(asked(model))
        await eventually(lambda: tracer.ended)
        assert tracer.ended[0][:2] == WAITED

    traced(use)


def test_a_client_that_goes_away_does_not_keep_its_trace_open():
    async def use(engine, tracer, infer, stream):
        call = infer(asked("later"))
        await eventually(lambda: engine.held)
        call.cancel()
        await eventually(lambda: tracer.ended)
        engine.held[0].respond(echo(engine.held[0]))

    traced(use)


def test_each_message_of_a_stream_is_noted_and_its_trace_ends_with_the_last():
    async def use(engine, tracer, infer, stream):
        call = stream()
        await call.write(asked("decoupled"))
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
            await call.write(asked(model))
            await call.read()
        await eventually(lambda: len(tracer.ended) == 3)
        assert tracer.ended == [[*WAITED, *SENT]] * 3
        call.cancel()

    traced(use)


def test_a_stream_that_is_abandoned_ends_the_traces_of_what_was_not_sent():
    async def use(engine, tracer, infer, stream):
        call = stream()
        await call.write(asked("later"))
        await call.write(asked("later"))
        await eventually(lambda: len(engine.held) == 2)
        engine.held[1].respond(echo(engine.held[1]))  # its turn has not come
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
        await call.write(asked("failing"))
        with contextlib.suppress(grpc.aio.AioRpcError):
            await call.read()
        assert await call.code() is grpc.StatusCode.INTERNAL
        await eventually(lambda: tracer.ended)

    traced(use)
