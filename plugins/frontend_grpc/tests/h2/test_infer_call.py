"""Calls of ModelInfer."""

from __future__ import annotations

import gc
import gzip
import logging
import tracemalloc
import zlib

import pytest

from tritonpy import now_ns
from tritonpy.tracing import TraceFamily, Tracer
from tritonpy_frontend_grpc.h2 import long_message
from tritonpy_frontend_grpc.h2.long_message import MIN_BYTES
from tritonpy_frontend_grpc.status import SHUTTING_DOWN
from tritonpy_types import TraceLevel

from ..fake_engine import FakeEngine, echo, eventually, run
from .fake_streams import Server
from .messages import frame, infer_request, read_response

LONG = frame(infer_request(data=bytes(MIN_BYTES)))
OK = (0, "")


def begun():
    """Return a call with the start of a long message."""
    stream = Server().stream("ModelInfer", ended=False)
    stream.feed(LONG[:1000])
    return stream


@pytest.mark.parametrize("ended", [True, False])
def test_a_long_message_is_read_into_its_buffer(ended):
    async def scenario():
        stream, at = begun(), 1000
        while at < len(LONG):
            body_buffer = stream.receiver.body_buffer()
            count = min(len(body_buffer), 100_000)
            body_buffer[:count] = LONG[at : at + count]
            at += count
            stream.receiver.body_buffer_updated(count, ended and at == len(LONG))
        status, _, (message,) = await stream.outcome()
        assert (status, read_response(message)) == (0, ("", [0] * MIN_BYTES))

    run(scenario)


def test_parts_of_a_long_message_may_arrive_outside_its_buffer():
    async def scenario():
        stream = begun()
        body_buffer = stream.receiver.body_buffer()
        body_buffer[:1000] = LONG[1000:2000]
        stream.receiver.body_buffer_updated(1000, ended=False)
        stream.feed(LONG[2000:], ended=True)
        assert (await stream.outcome())[0] == 0
        assert stream.receiver.body_buffer() is None

    run(scenario)


def test_a_disconnect_after_a_long_message_leaves_nothing():
    async def scenario():
        server = Server()
        stream = server.stream("ModelInfer", ended=False)
        stream.feed(LONG[:-10])
        stream.receiver.body_buffer()[:] = LONG[-10:]
        stream.receiver.body_buffer_updated(10, ended=True)
        stream.leave()
        await server.call_server.drain()
        assert not stream.receiver._submitted

    run(scenario)


@pytest.mark.parametrize(
    ("rest", "status"),
    [(LONG[1000:-1], 13), (LONG[1000:] + b"\0", 12), (b"", 13)],
    ids=["short", "long", "nothing"],
)
def test_a_long_message_must_have_the_declared_length(rest, status):
    async def scenario():
        stream = begun()
        stream.feed(rest, ended=True)
        assert (await stream.outcome())[0] == status

    run(scenario)


def test_a_truncated_long_message_gets_an_error():
    async def scenario():
        stream = begun()
        stream.receiver.body_buffer()[:10] = LONG[1000:1010]
        stream.receiver.body_buffer_updated(10, ended=True)
        assert (await stream.outcome())[:2] == (13, "the request ends in the middle of a message")

    run(scenario)


def test_a_failed_allocation_ends_only_its_call(monkeypatch):
    def no_memory(_nothing, _length):
        raise MemoryError

    async def scenario():
        monkeypatch.setattr(long_message, "_bytes_of_size", no_memory)
        stream = begun()
        status, text, _ = await stream.outcome()
        assert (status, text) == (8, f"there is no memory for a message of {len(LONG) - 5} bytes")
        assert stream.receiver.body_buffer() is None

    run(scenario)


def test_a_response_has_a_message_and_a_status(serve):
    async def scenario():
        stream = serve().stream("ModelInfer", infer_request(request_id="7"))
        status, text, (message,) = await stream.outcome()
        assert (status, text) == OK
        assert read_response(message) == ("7", list(b"1234"))
        assert (stream.status, stream.headers) == (200, {b"content-type": b"application/grpc"})

    run(scenario)


@pytest.mark.parametrize("size", [1, 4, 5, 6, 20])
def test_a_message_may_arrive_in_any_parts(serve, size):
    async def scenario():
        server, body = serve(), frame(infer_request())
        stream = server.stream("ModelInfer", ended=False)
        for at in range(0, len(body), size):
            stream.feed(body[at : at + size])
        assert (await stream.outcome())[0] == 0  # although the client has not ended the stream

    run(scenario)


def test_a_large_response_is_sent(serve):
    async def scenario():
        data = bytes(range(256)) * 2000
        stream = serve().stream("ModelInfer", infer_request(data=data))
        assert read_response((await stream.outcome())[2][0]) == ("", list(data))

    run(scenario)


@pytest.mark.parametrize(
    ("model", "status", "text"),
    [
        ("failing", 13, "the model failed"),
        ("unknown", 3, "Request for unknown model: 'unknown' is not found"),
        (
            "decoupled",
            12,
            "ModelInfer RPC doesn't support models with decoupled transaction policy",
        ),
    ],
)
def test_an_error_is_a_response_without_a_message(serve, model, status, text):
    async def scenario():
        stream = serve().stream("ModelInfer", infer_request(model))
        assert await stream.outcome() == (status, text, [])
        assert stream.trailers == {}

    run(scenario)


def test_an_internal_error_hides_details(serve, caplog):
    async def scenario():
        status, text, _ = await serve().stream("ModelInfer", infer_request("broken")).outcome()
        assert status == 13
        assert "see error id" in text

    run(scenario)
    assert "a secret" in caplog.text


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (b"", 12, "has one message, and this one has none"),
        (b"\0\0", 13, "ends in the middle of a message"),
        (b"\0\0\0\0\5abcd", 13, "ends in the middle of a message"),
        (b"\0\x80\0\0\0abcd", 3, "a message of 2147483648 bytes was announced"),
        (frame(b"") + b"\0", 12, "has one message, and this one has more"),
        (frame(infer_request()) * 2, 12, "has one message, and this one has more"),
        (frame(b"\xff\xff"), 3, "2 bytes are not a message inference.ModelInferRequest"),
        (frame(infer_request(), 1), 13, "marked as compressed, but the call has no grpc-encoding"),
        (frame(infer_request(), 7), 13, "marked as compressed, but the call has no grpc-encoding"),
    ],
)
def test_an_invalid_body_gets_an_error(serve, body, status, text):
    async def scenario():
        found, message_text, messages = await serve().stream("ModelInfer", body=body).outcome()
        assert (found, messages) == (status, [])
        assert text in message_text

    run(scenario)


@pytest.mark.parametrize(
    ("pack", "encoding"), [(gzip.compress, b"gzip"), (zlib.compress, b"deflate")]
)
@pytest.mark.parametrize("size", [10, 100_000])
def test_a_compressed_message_is_decompressed(serve, pack, encoding, size):
    async def scenario():
        body = frame(pack(infer_request(data=bytes(size))), 1)
        stream = serve().stream("ModelInfer", body=body, grpc_encoding=encoding)
        assert read_response((await stream.outcome())[2][0]) == ("", [0] * size)

    run(scenario)


@pytest.mark.parametrize(
    ("compressed", "text"),
    [
        (
            gzip.compress(infer_request(data=bytes(10**6))),
            "exceeds the maximum allowed value of 1000 bytes",
        ),
        (gzip.compress(b"a")[:5], "the compressed data ends too early"),
    ],
)
def test_decompression_bombs_and_damaged_messages_are_refused(serve, compressed, text):
    async def scenario():
        server = serve(max_decompressed_size=1000)
        status, message_text, _ = await server.stream(
            "ModelInfer", body=frame(compressed, 1), grpc_encoding=b"gzip"
        ).outcome()
        assert status == 3
        assert text in message_text

    run(scenario)


def test_a_response_is_compressed_if_the_client_accepts_it(serve):
    async def scenario():
        server, data = serve(infer_response_compression_level="low"), bytes(10**5)
        stream = server.stream(
            "ModelInfer", infer_request(data=data), grpc_accept_encoding=b"identity,gzip"
        )
        _, _, (message,) = await stream.outcome()
        assert stream.headers[b"grpc-encoding"] == b"gzip"
        assert read_response(gzip.decompress(message.removeprefix(b"packed "))) == ("", list(data))
        plain = server.stream("ModelInfer", infer_request(data=data))
        assert read_response((await plain.outcome())[2][0]) == ("", list(data))

    run(scenario)


def test_a_passed_deadline_cancels_the_request_and_sets_the_status(serve):
    async def scenario():
        server = serve()
        for timeout_ms in (50, 500, 5000):
            stream = server.stream(
                "ModelInfer", infer_request("later"), grpc_timeout=b"%dm" % timeout_ms
            )
            await eventually(lambda stream=stream: server.engine.held or stream.over.is_set())
            latest = now_ns() + timeout_ms * 10**6
            assert await stream.outcome() == (4, "Deadline Exceeded", [])
            if server.engine.held:  # otherwise it expired before the message was read
                break
        assert 0 < server.engine.held[0].deadline_ns <= latest
        assert server.engine.held[0].cancelled
        server.engine.held[0].respond(echo(server.engine.held[0]))  # a late response is ignored
        await server.call_server.drain()

    run(scenario)


def test_a_deadline_may_pass_before_the_message_is_complete(serve):
    async def scenario():
        server = serve()
        stream = server.stream("ModelInfer", body=b"\0\0", ended=False, grpc_timeout=b"10m")
        assert await stream.outcome() == (4, "Deadline Exceeded", [])
        stream.feed(frame(infer_request())[2:])
        await server.call_server.drain()
        assert not server.engine.held

    run(scenario)


def test_a_response_in_time_cancels_the_deadline(serve):
    async def scenario():
        server = serve()
        stream = server.stream("ModelInfer", infer_request("later"), grpc_timeout=b"20S")
        await eventually(lambda: server.engine.held)
        server.engine.held[0].respond(echo(server.engine.held[0]))
        assert (await stream.outcome())[0] == 0

    run(scenario)


def test_a_disconnect_cancels_the_request(serve):
    async def scenario():
        server = serve()
        stream = server.stream("ModelInfer", infer_request("later"))
        await eventually(lambda: server.engine.held)
        stream.leave()
        await eventually(lambda: server.engine.held[0].cancelled)
        await server.call_server.drain()

    run(scenario)


def test_a_disconnect_during_the_message_leaves_nothing(serve):
    async def scenario():
        server = serve()
        server.stream("ModelInfer", body=frame(infer_request("later"))[:-1], ended=False).leave()
        await server.call_server.drain()
        assert not server.engine.held

    run(scenario)


def test_a_draining_server_finishes_requests_and_refuses_new_ones(serve):
    async def scenario():
        server = serve()
        live = server.stream("ModelInfer", infer_request("later"))
        await eventually(lambda: server.engine.held)
        draining = server.loop.create_task(server.call_server.drain())
        await eventually(lambda: server.call_server.service._inflight.is_draining)
        assert await server.stream("ModelInfer", infer_request()).outcome() == (
            14,
            SHUTTING_DOWN,
            [],
        )
        assert not draining.done()
        server.engine.held[0].respond(echo(server.engine.held[0]))
        assert (await live.outcome())[0] == 0
        await draining

    run(scenario)


class RecordingTracer(Tracer):
    """Traces every request and records the headers."""

    headers = ("traceparent",)

    def __init__(self):
        self.active = True
        self.sampled = []
        self.ended = []

    def sample(self, model_name, headers):
        self.sampled.append((model_name, dict(headers)))
        return TraceFamily(
            TraceLevel.TIMESTAMPS, None, None, lambda _: None, self.ended.append
        ).trace()


@pytest.mark.parametrize("model", ["identity", "failing"])
def test_a_traced_request_has_all_time_stamps(serve, model):
    async def scenario():
        tracer = RecordingTracer()
        server = serve(tracer=tracer)
        await server.stream(
            "ModelInfer", infer_request(model), metadata=((b"traceparent", b"00-1"),)
        ).outcome()
        await eventually(lambda: tracer.ended)
        assert tracer.sampled == [(model, {"traceparent": "00-1"})]
        names = [stamp.name for stamp in tracer.ended[0].traces[0].stamps()]
        assert names == [
            "GRPC_WAITREAD_START",
            "GRPC_WAITREAD_END",
            "GRPC_SEND_START",
            "GRPC_SEND_END",
        ]

    run(scenario)


@pytest.fixture
def unlogged():
    """Disable logging: pytest would retain log records and their tracebacks."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("model", ["identity", "unknown", "failing", "broken"])
def test_a_finished_call_retains_no_memory(serve, model, unlogged):
    size, calls = 2**20, 16

    async def scenario():
        server = serve(FakeEngine())
        gc.collect()
        gc.disable()
        tracemalloc.start()
        try:
            for _ in range(calls):
                await server.stream("ModelInfer", infer_request(model, data=bytes(size))).outcome()
            await eventually(lambda: tracemalloc.get_traced_memory()[0] < 4 * size)
        finally:
            tracemalloc.stop()
            gc.enable()

    run(scenario)
