"""Calls of ModelInfer, on any transport: `serve` makes a server of its own; a module of tests takes these in."""

from __future__ import annotations

import gc
import gzip
import logging
import tracemalloc
import zlib

import pytest

from tritonpy import TraceFamily, Tracer, now_ns
from tritonpy.types import TraceLevel
from tritonpy_frontend_grpc.status import SHUTTING_DOWN

from ...fake_engine import FakeEngine, echo, eventually, run
from .frames import frame
from .messages import answered, asked

OK = (0, "")


def test_a_request_is_answered_with_its_message_and_a_status_behind_it(serve):
    async def scenario():
        stream = serve().stream("ModelInfer", asked(request_id="7"))
        status, text, (message,) = await stream.outcome()
        assert (status, text) == OK
        assert answered(message) == ("7", list(b"1234"))
        assert (stream.status, stream.headers) == (200, {b"content-type": b"application/grpc"})

    run(scenario)


@pytest.mark.parametrize("size", [1, 4, 5, 6, 20])
def test_a_message_may_come_in_any_pieces(serve, size):
    async def scenario():
        server, body = serve(), frame(asked())
        stream = server.stream("ModelInfer", ended=False)
        for at in range(0, len(body), size):
            stream.feed(body[at : at + size])
        assert (await stream.outcome())[0] == 0  # the client need not have ended its side

    run(scenario)


def test_a_large_answer_goes_out_in_one_piece_behind_its_prefix(serve):
    async def scenario():
        data = bytes(range(256)) * 2000
        stream = serve().stream("ModelInfer", asked(data=data))
        assert answered((await stream.outcome())[2][0]) == ("", list(data))

    run(scenario)


@pytest.mark.parametrize(
    ("model", "status", "text"),
    [
        ("failing", 13, "the model failed"),
        ("unknown", 3, "Request for unknown model: 'unknown' is not found"),
        ("decoupled", 12, "ModelInfer RPC doesn't support models with decoupled transaction policy"),
    ],
)
def test_an_error_is_an_answer_without_a_message(serve, model, status, text):
    async def scenario():
        stream = serve().stream("ModelInfer", asked(model))
        assert await stream.outcome() == (status, text, [])
        assert stream.trailers == {}

    run(scenario)


def test_a_bug_keeps_its_secrets(serve, caplog):
    async def scenario():
        status, text, _ = await serve().stream("ModelInfer", asked("broken")).outcome()
        assert status == 13
        assert "see incident" in text

    run(scenario)
    assert "a secret" in caplog.text


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (b"", 12, "has one message, and this one has none"),
        (b"\0\0", 13, "ends in the middle of a message"),
        (b"\0\0\0\0\5abcd", 13, "ends in the middle of a message"),
        (b"\0\x80\0\0\0abcd", 3, "a message of 2147483648 bytes is announced"),
        (frame(b"") + b"\0", 12, "has one message, and this one has more"),
        (frame(asked()) * 2, 12, "has one message, and this one has more"),
        (frame(b"\xff\xff"), 3, "2 bytes are not a message inference.ModelInferRequest"),
        (frame(asked(), 1), 13, "marked as compressed, and the call does not say how"),
        (frame(asked(), 7), 13, "marked as compressed, and the call does not say how"),
    ],
)
def test_a_body_that_is_no_message_is_told_so(serve, body, status, text):
    async def scenario():
        found, said, messages = await serve().stream("ModelInfer", body=body).outcome()
        assert (found, messages) == (status, [])
        assert text in said

    run(scenario)


@pytest.mark.parametrize(("pack", "encoding"), [(gzip.compress, b"gzip"), (zlib.compress, b"deflate")])
@pytest.mark.parametrize("size", [10, 100_000])
def test_a_compressed_message_is_read(serve, pack, encoding, size):
    async def scenario():
        body = frame(pack(asked(data=bytes(size))), 1)
        stream = serve().stream("ModelInfer", body=body, grpc_encoding=encoding)
        assert answered((await stream.outcome())[2][0]) == ("", [0] * size)

    run(scenario)


@pytest.mark.parametrize(
    ("packed", "text"),
    [
        (gzip.compress(asked(data=bytes(10**6))), "exceeds the maximum allowed value of 1000 bytes"),
        (gzip.compress(b"a")[:5], "the compressed data ends too early"),
    ],
)
def test_a_bomb_and_a_damaged_message_are_refused(serve, packed, text):
    async def scenario():
        server = serve(max_decompressed_size=1000)
        status, said, _ = await server.stream("ModelInfer", body=frame(packed, 1), grpc_encoding=b"gzip").outcome()
        assert status == 3
        assert text in said

    run(scenario)


def test_an_answer_is_compressed_where_that_is_wanted(serve):
    async def scenario():
        server, data = serve(infer_response_compression_level="low"), bytes(10**5)
        stream = server.stream("ModelInfer", asked(data=data), grpc_accept_encoding=b"identity,gzip")
        _, _, (message,) = await stream.outcome()
        assert stream.headers[b"grpc-encoding"] == b"gzip"
        assert answered(gzip.decompress(message.removeprefix(b"packed "))) == ("", list(data))
        plain = server.stream("ModelInfer", asked(data=data))
        assert answered((await plain.outcome())[2][0]) == ("", list(data))

    run(scenario)


def test_a_deadline_that_passes_cancels_the_request_and_is_the_status(serve):
    async def scenario():
        server = serve()
        for timeout_ms in (50, 500, 5000):
            stream = server.stream("ModelInfer", asked("later"), grpc_timeout=b"%dm" % timeout_ms)
            await eventually(lambda stream=stream: server.engine.held or stream.over.is_set())
            latest = now_ns() + timeout_ms * 10**6
            assert await stream.outcome() == (4, "Deadline Exceeded", [])
            if server.engine.held:  # else its time was over before the message was read
                break
        assert 0 < server.engine.held[0].deadline_ns <= latest
        assert server.engine.held[0].cancelled
        server.engine.held[0].respond(echo(server.engine.held[0]))  # too late, and nobody minds
        await server.serving.drain()

    run(scenario)


def test_a_deadline_passes_while_the_message_is_still_on_its_way(serve):
    async def scenario():
        server = serve()
        stream = server.stream("ModelInfer", body=b"\0\0", ended=False, grpc_timeout=b"10m")
        assert await stream.outcome() == (4, "Deadline Exceeded", [])
        stream.feed(frame(asked())[2:])
        await server.serving.drain()
        assert not server.engine.held

    run(scenario)


def test_an_answer_in_time_forgets_the_deadline(serve):
    async def scenario():
        server = serve()
        stream = server.stream("ModelInfer", asked("later"), grpc_timeout=b"20S")
        await eventually(lambda: server.engine.held)
        server.engine.held[0].respond(echo(server.engine.held[0]))
        assert (await stream.outcome())[0] == 0

    run(scenario)


def test_a_client_that_leaves_cancels_its_request(serve):
    async def scenario():
        server = serve()
        stream = server.stream("ModelInfer", asked("later"))
        await eventually(lambda: server.engine.held)
        stream.leave()
        await eventually(lambda: server.engine.held[0].cancelled)
        await server.serving.drain()

    run(scenario)


def test_a_client_that_leaves_in_the_middle_of_its_message_leaves_nothing(serve):
    async def scenario():
        server = serve()
        server.stream("ModelInfer", body=frame(asked("later"))[:-1], ended=False).leave()
        await server.serving.drain()
        assert not server.engine.held

    run(scenario)


def test_a_draining_server_answers_what_it_has_and_refuses_more(serve):
    async def scenario():
        server = serve()
        live = server.stream("ModelInfer", asked("later"))
        await eventually(lambda: server.engine.held)
        draining = server.loop.create_task(server.serving.drain())
        await eventually(lambda: server.serving.service._gate.closed)
        assert await server.stream("ModelInfer", asked()).outcome() == (14, SHUTTING_DOWN, [])
        assert not draining.done()
        server.engine.held[0].respond(echo(server.engine.held[0]))
        assert (await live.outcome())[0] == 0
        await draining

    run(scenario)


class Noting(Tracer):
    """Traces every request and keeps what headers it was asked with."""

    headers = ("traceparent",)

    def __init__(self):
        self.active = True
        self.asked = []
        self.ended = []

    def sample(self, model_name, headers):
        self.asked.append((model_name, dict(headers)))
        return TraceFamily(TraceLevel.TIMESTAMPS, None, None, lambda _: None, self.ended.append).trace()


@pytest.mark.parametrize("model", ["identity", "failing"])
def test_a_traced_request_says_when_it_came_and_when_its_answer_went(serve, model):
    async def scenario():
        tracer = Noting()
        server = serve(tracer=tracer)
        await server.stream("ModelInfer", asked(model), metadata=((b"traceparent", b"00-1"),)).outcome()
        await eventually(lambda: tracer.ended)
        assert tracer.asked == [(model, {"traceparent": "00-1"})]
        names = [stamp.name for stamp in tracer.ended[0].traces[0].stamps()]
        assert names == ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "GRPC_SEND_START", "GRPC_SEND_END"]

    run(scenario)


@pytest.fixture
def unlogged():
    """pytest would keep the records of incidents, and their tracebacks."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("model", ["identity", "unknown", "failing", "broken"])
def test_an_answered_call_keeps_nothing(serve, model, unlogged):
    size, calls = 2**20, 16

    async def scenario():
        server = serve(FakeEngine())
        gc.collect()
        gc.disable()
        tracemalloc.start()
        try:
            for _ in range(calls):
                await server.stream("ModelInfer", asked(model, data=bytes(size))).outcome()
            await eventually(lambda: tracemalloc.get_traced_memory()[0] < 4 * size)
        finally:
            tracemalloc.stop()
            gc.enable()

    run(scenario)
