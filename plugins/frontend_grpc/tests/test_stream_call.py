from __future__ import annotations

import asyncio
import queue

import grpc
import numpy as np
import pytest
import tritonclient.grpc as sync_client

from tritonpy import InferResponse, Internal
from tritonpy_protos import METHODS
from tritonpy_protos.grpc_service_pb2 import (
    InferParameter,
    ModelInferRequest,
    ModelStreamInferResponse,
)

from .fake_engine import WAIT_S, FakeEngine, echo, eventually, number, run, serving

STREAM = next(method for method in METHODS if method.name == "ModelStreamInfer")
EMPTY_FINAL = {"triton_enable_empty_final_response": InferParameter(bool_param=True)}


def infer_request(model, request_id="", raw=b"1234", **fields):
    message = ModelInferRequest(model_name=model, id=request_id, raw_input_contents=[raw], **fields)
    message.inputs.add(name="X", datatype="UINT8", shape=[len(raw)])
    return message


def with_stream(use, count=1, metadata=None, **options):
    """Run `use(engine, frontend, *calls)` with `count` open calls on one channel."""

    async def scenario():
        engine = FakeEngine()
        async with (
            serving(engine, **options) as frontend,
            grpc.aio.insecure_channel(frontend.address()) as channel,
        ):
            open_call = channel.stream_stream(
                STREAM.path, STREAM.request.SerializeToString, ModelStreamInferResponse.FromString
            )
            calls = [open_call(metadata=metadata) for _ in range(count)]
            await use(engine, frontend, *calls)
            for call in calls:
                call.cancel()

    run(scenario)


def test_the_client_streams_in_order():
    answers = queue.Queue()

    def in_thread(address):
        with sync_client.InferenceServerClient(address) as client:
            client.start_stream(lambda result, error: answers.put((result, error)))
            for at in range(100):
                tensor = sync_client.InferInput("X", [1], "INT32").set_data_from_numpy(
                    np.array([at], np.int32)
                )
                client.async_stream_infer("identity", [tensor], request_id=str(at))
            found = [answers.get(timeout=WAIT_S) for _ in range(100)]
            client.stop_stream()
        assert [error for _, error in found] == [None] * 100
        assert [result.as_numpy("X").tolist() for result, _ in found] == [[at] for at in range(100)]
        assert all(
            result.get_response().parameters["triton_final_response"].bool_param
            for result, _ in found
        )

    async def scenario():
        async with serving(FakeEngine()) as frontend:
            await asyncio.to_thread(in_thread, frontend.address())

    run(scenario)


def test_decoupled_responses_are_sent_as_they_are_produced():
    async def use(engine, _frontend, call):
        await call.write(infer_request("decoupled", "d", parameters=EMPTY_FINAL))
        await eventually(lambda: engine.held)
        (request,) = engine.held
        for value in (1, 2):
            request.respond(number(request, value))
            message = (await call.read()).infer_response
            assert np.frombuffer(message.raw_output_contents[0], np.int32).tolist() == [value]
            assert not message.parameters["triton_final_response"].bool_param
        request.respond(InferResponse((), "decoupled", 1, "d", empty=True))
        last = (await call.read()).infer_response
        assert (last.id, last.parameters["triton_final_response"].bool_param) == ("d", True)
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF
        assert await call.code() is grpc.StatusCode.OK

    with_stream(use)


def test_errors_do_not_end_the_stream():
    async def use(_engine, _frontend, call):
        for model in ("unknown", "failing", "broken", "identity"):
            await call.write(infer_request(model, model))
        answers = [await call.read() for _ in range(4)]
        assert [answer.infer_response.id for answer in answers] == [
            "unknown",
            "failing",
            "broken",
            "identity",
        ]
        assert [bool(answer.error_message) for answer in answers] == [True, True, True, False]
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF
        assert await call.code() is grpc.StatusCode.OK

    with_stream(use)


def test_the_first_model_error_is_the_status_on_request():
    async def use(engine, _frontend, call):
        await call.write(infer_request("later"))
        await call.write(infer_request("failing"))
        with pytest.raises(grpc.aio.AioRpcError):
            await call.read()
        assert await call.code() is grpc.StatusCode.INTERNAL
        await eventually(lambda: engine.held[0].cancelled)

    with_stream(use, metadata=(("triton_grpc_error", "true"),))


def test_a_disconnect_cancels_all_requests():
    async def use(engine, frontend, call):
        await call.write(infer_request("later"))
        await call.write(infer_request("decoupled"))
        await eventually(lambda: len(engine.held) == 2)
        call.cancel()
        await eventually(lambda: all(request.cancelled for request in engine.held))
        for request in engine.held:
            request.respond(echo(request))
        await frontend.drain()

    with_stream(use)


def test_responses_are_sent_after_the_client_has_finished_writing():
    async def use(engine, _frontend, call):
        await call.write(infer_request("later"))
        await call.done_writing()
        await eventually(lambda: engine.held)
        engine.held[0].respond(echo(engine.held[0]))
        assert (await call.read()).infer_response.raw_output_contents == [b"1234"]
        assert await call.read() is grpc.aio.EOF

    with_stream(use)


def test_streams_do_not_wait_for_each_other():
    async def use(engine, _frontend, first, second):
        await first.write(infer_request("later", "1"))
        await eventually(lambda: engine.held)
        await second.write(infer_request("identity", "2"))
        assert (await second.read()).infer_response.id == "2"
        engine.held[0].respond(echo(engine.held[0]))
        assert (await first.read()).infer_response.id == "1"

    with_stream(use, count=2)


def test_a_slow_client_blocks_only_its_own_producer():
    async def use(engine, _frontend, slow, quick):
        await slow.write(infer_request("decoupled", raw=bytes(2**20)))
        await eventually(lambda: engine.held)
        (request,) = engine.held
        made = 0
        while request.sink.ready(request):  # the transport buffers some, then the limit applies
            request.respond(echo(request, final=False))
            made += 1
            await asyncio.sleep(0)
        await quick.write(infer_request("identity"))
        assert (await quick.read()).infer_response.raw_output_contents == [b"1234"]
        for _ in range(made):
            assert len((await slow.read()).infer_response.raw_output_contents[0]) == 2**20
        await eventually(lambda: request.sink.ready(request))

    with_stream(use, count=2, max_response_pool_size=4)


def test_a_draining_server_refuses_on_open_streams_and_ends_them():
    async def use(engine, frontend, call):
        await call.write(infer_request("later", "1"))
        await eventually(lambda: engine.held)
        draining = asyncio.create_task(frontend.drain())
        await call.write(infer_request("identity", "2"))
        engine.held[0].respond(echo(engine.held[0]))
        assert (await call.read()).infer_response.id == "1"
        refused = await call.read()
        assert (
            refused.error_message
            == "GRPC server is shutting down and has stopped accepting new requests."
        )
        await draining
        await frontend.stop()
        with pytest.raises(grpc.aio.AioRpcError):
            await call.read()
        assert await call.code() is grpc.StatusCode.UNAVAILABLE

    with_stream(use)


def test_an_invalid_message_does_not_end_the_stream():
    async def scenario():
        async with (
            serving(FakeEngine()) as frontend,
            grpc.aio.insecure_channel(frontend.address()) as channel,
        ):
            call = channel.stream_stream(STREAM.path, None, ModelStreamInferResponse.FromString)()
            await call.write(b"\xff\xff")
            assert (await call.read()).error_message.startswith("unable to parse the request")
            await call.write(infer_request("identity").SerializeToString())
            assert not (await call.read()).error_message
            await call.done_writing()
            assert await call.read() is grpc.aio.EOF

    run(scenario)


def test_an_error_after_responses_is_the_last_message():
    async def use(engine, _frontend, call):
        await call.write(infer_request("decoupled"))
        await eventually(lambda: engine.held)
        (request,) = engine.held
        request.respond(number(request, 1))
        request.respond(InferResponse.failed(request, Internal("half way")))
        assert not (await call.read()).error_message
        last = await call.read()
        assert last.error_message == "half way"
        assert last.infer_response.parameters["triton_final_response"].bool_param

    with_stream(use)
