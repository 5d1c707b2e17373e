from __future__ import annotations

import pytest

from plugins.frontend_grpc.tests.fake_engine import run
from plugins.frontend_grpc.tests.wire.scenarios.frames import frame
from plugins.frontend_grpc.tests.wire.scenarios.infer_call import *  # noqa: F403
from plugins.frontend_grpc.tests.wire.scenarios.messages import answered, asked
from tritonpy_frontend_h2 import long_message
from tritonpy_frontend_h2.long_message import SHORTEST

from .h2_like import Server

LONG = frame(asked(data=bytes(SHORTEST)))


def begun():
    """Return a call with the beginning of a long message."""
    stream = Server().stream("ModelInfer", ended=False)
    stream.feed(LONG[:1000])
    return stream


@pytest.mark.parametrize("ended", [True, False])
def test_a_long_message_may_be_read_to_its_place(ended):
    async def scenario():
        stream, at = begun(), 1000
        while at < len(LONG):
            room = stream.receiver.room()
            count = min(len(room), 100_000)
            room[:count] = LONG[at : at + count]
            at += count
            stream.receiver.filled(count, ended and at == len(LONG))
        status, _, (message,) = await stream.outcome()
        assert (status, answered(message)) == (0, ("", [0] * SHORTEST))

    run(scenario)


def test_parts_of_a_long_message_may_come_beside_its_place():
    async def scenario():
        stream = begun()
        room = stream.receiver.room()
        room[:1000] = LONG[1000:2000]
        stream.receiver.filled(1000, ended=False)
        stream.feed(LONG[2000:], ended=True)
        assert (await stream.outcome())[0] == 0
        assert stream.receiver.room() is None

    run(scenario)


def test_a_client_that_leaves_when_its_long_message_is_there_leaves_nothing():
    async def scenario():
        server = Server()
        stream = server.stream("ModelInfer", ended=False)
        stream.feed(LONG[:-10])
        stream.receiver.room()[:] = LONG[-10:]
        stream.receiver.filled(10, ended=True)
        stream.leave()
        await server.serving.drain()
        assert not stream.receiver._begun

    run(scenario)


@pytest.mark.parametrize(
    ("rest", "status"), [(LONG[1000:-1], 13), (LONG[1000:] + b"\0", 12), (b"", 13)], ids=["short", "long", "nothing"]
)
def test_a_long_message_has_the_length_that_it_says(rest, status):
    async def scenario():
        stream = begun()
        stream.feed(rest, ended=True)
        assert (await stream.outcome())[0] == status

    run(scenario)


def test_a_place_that_is_not_filled_is_told_so():
    async def scenario():
        stream = begun()
        stream.receiver.room()[:10] = LONG[1000:1010]
        stream.receiver.filled(10, ended=True)
        assert (await stream.outcome())[:2] == (13, "the request ends in the middle of a message")

    run(scenario)


def test_a_long_message_for_which_there_is_no_memory_ends_its_call_alone(monkeypatch):
    def no_memory(_nothing, _length):
        raise MemoryError

    async def scenario():
        monkeypatch.setattr(long_message, "_bytes_of_size", no_memory)
        stream = begun()
        status, text, _ = await stream.outcome()
        assert (status, text) == (8, f"there is no memory for a message of {len(LONG) - 5} bytes")
        assert stream.receiver.room() is None

    run(scenario)
