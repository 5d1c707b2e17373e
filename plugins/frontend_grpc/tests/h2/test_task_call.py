"""Calls with a task."""

from __future__ import annotations

import asyncio
import gzip

import numpy as np
import pytest
from hpack import Decoder

from tritonpy import InferResponse, Internal
from tritonpy_frontend_grpc.h2.compression import Compression
from tritonpy_frontend_grpc.h2.head import CallHead
from tritonpy_frontend_grpc.h2.task_call import H2TaskCall
from tritonpy_frontend_grpc.stream_call import MAX_UNSENT_BYTES
from tritonpy_http2 import Http2CallStream
from tritonpy_protos import grpc_service_pb2 as pb

from ..fake_engine import echo, eventually, number, run
from .messages import frame, infer_request

TIMEOUTS = (
    b"50m",
    b"500m",
    b"5S",
)  # timeouts of calls; the first suffices unless the machine is slow
EMPTY_FINAL = {"triton_enable_empty_final_response": pb.InferParameter(bool_param=True)}


class FullStream(Http2CallStream):
    """A stream whose client does not read."""

    def __init__(self):
        self.blocks = []

    def send(self, headers, data, trailers):
        self.blocks += [
            dict(Decoder().decode(block)) for block in (headers, trailers) if block is not None
        ]
        return False

    def reset(self, code):
        raise NotImplementedError

    def hold(self, count):
        raise NotImplementedError

    def consumed(self, count):
        raise NotImplementedError


def test_a_deadline_before_the_first_message_is_sent_ends_with_trailers():
    async def answer(call):
        try:
            await call.write(b"message")
        except asyncio.CancelledError:
            await call.give_up()

    async def scenario():
        stream = FullStream()
        call = H2TaskCall(CallHead("POST", "/service/Method", ()), stream)
        call.task = asyncio.create_task(answer(call))
        await asyncio.sleep(0)
        call.expire()
        await call.task
        head, trailers = stream.blocks
        assert head[":status"] == "200"
        assert trailers == {"grpc-status": "4", "grpc-message": "Deadline Exceeded"}

    run(scenario)


class HeldStream(FullStream):
    """A stream that counts held bytes."""

    held = 0

    def hold(self, count):
        self.held += count

    def consumed(self, count):
        self.held -= count


def test_small_parts_of_a_body_are_joined():
    async def scenario():
        stream = HeldStream()
        call = H2TaskCall(CallHead("POST", "/service/Method", ()), stream)
        sent = bytes(range(250)) * 400
        for at in range(0, len(sent), 2):
            call.data(memoryview(sent)[at : at + 2], at + 2 == len(sent))
        assert len(call._parts) < 30
        read, more = b"", True
        while more:
            part, more = await call.receive()
            read += part
        assert (read, stream.held) == (sent, 0)

    run(scenario)


class ReadingStream(HeldStream):
    """A stream whose client reads while `reads` is set."""

    reads = True

    def __init__(self):
        super().__init__()
        self.sent = b""

    def send(self, headers, data, trailers):
        self.sent += b"".join(data)
        return self.reads


def make_call(stream):
    return H2TaskCall(CallHead("POST", "/service/Method", ()), stream)


def test_try_write_sends_without_waiting():
    async def scenario():
        stream = ReadingStream()
        call = make_call(stream)
        assert not call.try_write(b"first")  # the first message needs `write`, which sends the head
        await call.write(b"first")
        assert call.try_write(b"second")
        stream.reads = False
        assert call.try_write(b"third")
        assert not call.try_write(b"fourth")
        waiting = asyncio.create_task(call.write(b"fourth"))
        await asyncio.sleep(0)
        stream.reads = True
        call.resume()
        await waiting
        assert call.try_write(b"fifth")
        assert stream.sent == b"".join(
            map(frame, (b"first", b"second", b"third", b"fourth", b"fifth"))
        )
        call.compression = Compression("gzip", gzip.compress)
        assert not call.try_write(b"sixth")

    run(scenario)


def test_the_direct_reader_receives_messages_and_read_returns_refused_ones():
    async def scenario():
        stream, through = ReadingStream(), []

        def take(message):
            through.append(message)
            return message != b"no"

        call = make_call(stream)
        call.set_direct_reader(take)
        call.data(frame(b"early"), False)
        assert await call.read() == b"early"
        reading = asyncio.create_task(call.read())
        await asyncio.sleep(0)
        one = frame(b"one")
        call.data(one[:3], False)
        call.data(one[3:] + frame(b"two"), False)
        assert (through, stream.held) == ([b"one", b"two"], 0)
        call.data(frame(b"no") + frame(b"three"), False)
        call.data(frame(b"four"), True)
        assert [await reading, await call.read(), await call.read(), await call.read()] == [
            b"no", b"three", b"four", None,
        ]  # fmt: skip
        assert (through, stream.held) == ([b"one", b"two", b"no"], 0)

    run(scenario)


def test_an_invalid_message_for_the_direct_reader_ends_the_call():
    async def scenario():
        call = make_call(ReadingStream())
        call.set_direct_reader(lambda _: True)
        reading = asyncio.create_task(call.read())
        await asyncio.sleep(0)
        call.data(b"\1" + frame(b"compressed without encoding")[1:], False)
        with pytest.raises(Internal, match="marked as compressed"):
            await reading

    run(scenario)


def test_an_exception_in_the_direct_reader_ends_only_the_call():
    def take(_message):
        raise ZeroDivisionError

    async def scenario():
        call = make_call(ReadingStream())
        call.set_direct_reader(take)
        reading = asyncio.create_task(call.read())
        await asyncio.sleep(0)
        call.data(frame(b"message"), False)
        with pytest.raises(ZeroDivisionError):
            await reading

    run(scenario)


def test_try_write_refuses_messages_above_the_protobuf_limit(monkeypatch):
    monkeypatch.setattr("tritonpy_frontend_grpc.h2.task_call.MAX_MESSAGE_BYTES", 5)

    async def scenario():
        stream = ReadingStream()
        call = make_call(stream)
        await call.write(b"first")
        assert not call.try_write(b"longer")
        assert call.try_write(b"short")
        assert stream.sent == frame(b"first") + frame(b"short")

    run(scenario)


def parsed(messages):
    return [pb.ModelStreamInferResponse.FromString(message) for message in messages]


def test_a_stream_responds_in_order_and_ends_with_its_client(serve):
    async def scenario():
        requests = [
            infer_request("failing" if number % 10 == 3 else "identity", str(number))
            for number in range(50)
        ]
        status, _, messages = await serve().stream("ModelStreamInfer", *requests).outcome()
        answers = parsed(messages)
        assert status == 0
        assert [answer.infer_response.id for answer in answers] == [
            str(number) for number in range(50)
        ]
        assert [number for number, answer in enumerate(answers) if answer.error_message] == [
            3,
            13,
            23,
            33,
            43,
        ]

    run(scenario)


def test_responses_are_sent_while_the_client_still_writes(serve):
    async def scenario():
        server = serve()
        stream = server.stream("ModelStreamInfer", ended=False)
        for request_id in "abc":
            stream.feed(frame(infer_request(request_id=request_id)))
            got = []
            await eventually(lambda got=got: got.extend(stream.messages()) or got)
            assert parsed(got)[0].infer_response.id == request_id
        stream.feed(b"", ended=True)
        assert (await stream.outcome())[0] == 0

    run(scenario)


def test_a_stream_without_requests_has_no_responses(serve):
    async def scenario():
        assert await serve().stream("ModelStreamInfer").outcome() == (0, "", [])

    run(scenario)


def test_a_decoupled_model_may_send_any_number_of_responses(serve):
    async def scenario():
        server = serve()
        stream = server.stream(
            "ModelStreamInfer", infer_request("decoupled", "d", parameters=EMPTY_FINAL)
        )
        await eventually(lambda: server.engine.held)
        (request,) = server.engine.held
        for value in (1, 2):
            request.respond(number(request, value))
        request.respond(InferResponse((), "decoupled", 1, "d", empty=True))
        *values, last = [one.infer_response for one in parsed((await stream.outcome())[2])]
        assert [np.frombuffer(one.raw_output_contents[0], np.int32).tolist() for one in values] == [
            [1],
            [2],
        ]
        assert last.parameters["triton_final_response"].bool_param

    run(scenario)


def test_the_first_error_is_the_status_on_request(serve):
    async def scenario():
        server = serve()
        ends_on_error = ((b"triton_grpc_error", b"true"),)
        stream = server.stream(
            "ModelStreamInfer",
            infer_request(),
            infer_request("failing"),
            ended=False,
            metadata=ends_on_error,
        )
        status, text, messages = await stream.outcome()
        assert (status, text, len(messages)) == (13, "the model failed", 1)

    run(scenario)


@pytest.mark.parametrize("ended", [True, False])
def test_a_disconnect_cancels_all_requests(serve, ended):
    async def scenario():
        server = serve()
        stream = server.stream(
            "ModelStreamInfer", infer_request("later"), infer_request("decoupled"), ended=ended
        )
        await eventually(lambda: len(server.engine.held) == 2)
        stream.leave()
        await eventually(lambda: all(request.cancelled for request in server.engine.held))
        await stream.task
        for request in server.engine.held:
            request.respond(echo(request))
        await server.call_server.drain()

    run(scenario)


def test_a_deadline_ends_a_stream(serve):
    async def scenario():
        server = serve()
        for timeout in TIMEOUTS:
            stream = server.stream(
                "ModelStreamInfer", infer_request("later"), ended=False, grpc_timeout=timeout
            )
            assert (await stream.outcome())[:2] == (4, "Deadline Exceeded")
            if server.engine.held:  # otherwise it expired before the message was read
                break
        assert server.engine.held[0].cancelled

    run(scenario)


def test_a_deadline_after_the_first_response_is_sent_in_trailers(serve):
    async def scenario():
        server = serve()
        for timeout in TIMEOUTS:
            stream = server.stream(
                "ModelStreamInfer",
                infer_request(),
                infer_request("later"),
                ended=False,
                grpc_timeout=timeout,
            )
            status, _, messages = await stream.outcome()
            if messages:  # otherwise it expired before the first response
                break
        assert (status, len(messages), stream.trailers[b"grpc-status"]) == (4, 1, b"4")

    run(scenario)


def test_a_slow_client_pauses_writing_and_then_reading(serve):
    async def scenario():
        server, data = serve(), bytes(MAX_UNSENT_BYTES // 4)
        stream = server.stream("ModelStreamInfer", ended=False)
        stream.is_paused = True
        for _ in range(5):
            await eventually(lambda: stream.can_send)
            stream.feed(frame(infer_request(data=data)))
        await eventually(lambda: stream.sending)
        for _ in range(10):  # by then all five have responses
            await asyncio.sleep(0)
        for _ in range(10):
            stream.feed(frame(infer_request("later")))
            await asyncio.sleep(0)
        assert not stream.can_send
        assert not server.engine.held
        stream.feed(b"", ended=True)
        stream.resume_reading()
        await eventually(lambda: len(server.engine.held) == 10)
        for request in server.engine.held:
            request.respond(echo(request))
        assert len((await stream.outcome())[2]) == 15

    run(scenario)


def test_a_disconnect_during_a_write_ends_the_call(serve):
    async def scenario():
        server = serve()
        stream = server.stream(
            "ModelStreamInfer", infer_request(), infer_request("later"), ended=False
        )
        stream.is_paused = True
        await eventually(lambda: stream.sending and server.engine.held)
        stream.leave()
        await asyncio.wait_for(stream.task, 20)
        assert server.engine.held[0].cancelled

    run(scenario)


def test_a_truncated_message_ends_the_stream_with_an_error(serve):
    async def scenario():
        body = frame(infer_request()) + b"\0\0\0"
        status, text, _ = await serve().stream("ModelStreamInfer", body=body).outcome()
        assert (status, text) == (13, "the request ends in the middle of a message")

    run(scenario)


def test_messages_of_a_stream_are_compressed_both_ways(serve):
    async def scenario():
        server = serve(infer_response_compression_level="low")
        body = frame(gzip.compress(infer_request(data=bytes(10_000))), 1) + frame(
            infer_request(data=b"1")
        )
        stream = server.stream(
            "ModelStreamInfer", body=body, grpc_encoding=b"gzip", grpc_accept_encoding=b"gzip"
        )
        first, second = (await stream.outcome())[2]
        assert parsed([gzip.decompress(first.removeprefix(b"packed "))])[
            0
        ].infer_response.raw_output_contents == [bytes(10_000)]
        assert parsed([second])[0].infer_response.raw_output_contents == [b"1"]
        assert stream.headers[b"grpc-encoding"] == b"gzip"

    run(scenario)


def test_close_ends_open_streams(serve):
    async def scenario():
        server = serve()
        stream = server.stream("ModelStreamInfer", infer_request(), ended=False)
        got = []
        await eventually(lambda: got.extend(stream.messages()) or got)
        await server.call_server.drain()
        await server.call_server.close()
        assert stream.over.is_set()
        assert (await stream.outcome())[0] == 14

    run(scenario)


def test_close_has_a_timeout_for_slow_clients(serve):
    async def scenario():
        server = serve()
        stream = server.stream("ModelStreamInfer", infer_request(), ended=False)
        stream.is_paused = True
        await eventually(lambda: stream.sending)
        await server.call_server.close()
        assert not stream.over.is_set()
        stream.leave()
        await stream.task

    run(scenario)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 12),
        (frame(b"") * 2, 12),
        (b"\0\0", 13),
        (frame(b"\xff\xff"), 3),
        (frame(b"", 1), 13),
        (b"\0" + b"\xff" * 4, 3),
    ],
)
def test_a_unary_call_requires_exactly_one_message(serve, body, status):
    async def scenario():
        found, text, messages = await serve().stream("ServerLive", body=body).outcome()
        assert (found, messages) == (status, [])
        assert text

    run(scenario)


def test_ended_calls_leave_no_tasks(serve):
    async def scenario():
        server, before = serve(), len(asyncio.all_tasks())
        for _ in range(3):
            await server.stream(
                "ModelStreamInfer", infer_request(), ended=False, grpc_timeout=b"10m"
            ).outcome()
            await server.stream("ServerLive", b"").outcome()
        await eventually(lambda: len(asyncio.all_tasks()) == before)
        await eventually(server.is_idle)

    run(scenario)
