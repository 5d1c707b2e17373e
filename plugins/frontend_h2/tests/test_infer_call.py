from __future__ import annotations

import pytest

from plugins.frontend_grpc.tests.fake_engine import run
from plugins.frontend_grpc.tests.wire.scenarios.frames import frame
from plugins.frontend_grpc.tests.wire.scenarios.infer_call import *  # noqa: F403
from plugins.frontend_grpc.tests.wire.scenarios.messages import infer_request, read_response
from tritonpy_frontend_h2 import long_message
from tritonpy_frontend_h2.long_message import MIN_BYTES

from .fake_streams import Server

LONG = frame(infer_request(data=bytes(MIN_BYTES)))


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
    ("rest", "status"), [(LONG[1000:-1], 13), (LONG[1000:] + b"\0", 12), (b"", 13)], ids=["short", "long", "nothing"]
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
