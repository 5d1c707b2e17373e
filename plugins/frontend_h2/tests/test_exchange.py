from __future__ import annotations

import asyncio
import gzip

import pytest
from hpack import Decoder

from plugins.frontend_grpc.tests.fake_engine import run
from plugins.frontend_grpc.tests.wire.scenarios.exchange import *  # noqa: F403
from plugins.frontend_grpc.tests.wire.scenarios.frames import frame
from tritonpy import Internal
from tritonpy_frontend_grpc.wire.compression import Compression
from tritonpy_frontend_grpc.wire.head import Head
from tritonpy_frontend_h2.exchange import H2Exchange
from tritonpy_frontend_h2.http2.calls import Stream


class FullStream(Stream):
    """A stream whose client reads nothing."""

    def __init__(self):
        self.blocks = []

    def send(self, headers, data, trailers):
        self.blocks += [dict(Decoder().decode(block)) for block in (headers, trailers) if block is not None]
        return False

    def reset(self, code):
        raise NotImplementedError

    def hold(self, count):
        raise NotImplementedError

    def consumed(self, count):
        raise NotImplementedError


def test_a_deadline_that_passes_before_the_first_message_left_ends_with_trailers():
    async def answer(exchange):
        try:
            await exchange.write(b"message")
        except asyncio.CancelledError:
            await exchange.give_up()

    async def scenario():
        stream = FullStream()
        exchange = H2Exchange(Head("POST", "/service/Method", ()), stream)
        exchange.task = asyncio.create_task(answer(exchange))
        await asyncio.sleep(0)
        exchange.expire()
        await exchange.task
        head, trailers = stream.blocks
        assert head[":status"] == "200"
        assert trailers == {"grpc-status": "4", "grpc-message": "Deadline Exceeded"}

    run(scenario)


class HeldStream(FullStream):
    """A stream that counts what is held."""

    held = 0

    def hold(self, count):
        self.held += count

    def consumed(self, count):
        self.held -= count


def test_a_body_in_bits_takes_hardly_more_memory_than_its_bytes():
    async def scenario():
        stream = HeldStream()
        exchange = H2Exchange(Head("POST", "/service/Method", ()), stream)
        sent = bytes(range(250)) * 400
        for at in range(0, len(sent), 2):
            exchange.data(memoryview(sent)[at : at + 2], at + 2 == len(sent))
        assert len(exchange._parts) < 30
        read, more = b"", True
        while more:
            part, more = await exchange.receive()
            read += part
        assert (read, stream.held) == (sent, 0)

    run(scenario)


class OpenStream(HeldStream):
    """A stream whose client reads until it is told not to."""

    reads = True

    def __init__(self):
        super().__init__()
        self.sent = b""

    def send(self, headers, data, trailers):
        self.sent += b"".join(data)
        return self.reads


def made(stream):
    return H2Exchange(Head("POST", "/service/Method", ()), stream)


def test_a_message_is_written_at_once_where_nothing_has_to_be_waited_for():
    async def scenario():
        stream = OpenStream()
        exchange = made(stream)
        assert not exchange.try_write(b"first")  # the answer's head goes with a message that is waited for
        await exchange.write(b"first")
        assert exchange.try_write(b"second")
        stream.reads = False
        assert exchange.try_write(b"third")
        assert not exchange.try_write(b"fourth")
        waiting = asyncio.create_task(exchange.write(b"fourth"))
        await asyncio.sleep(0)
        stream.reads = True
        exchange.resume()
        await waiting
        assert exchange.try_write(b"fifth")
        assert stream.sent == b"".join(map(frame, (b"first", b"second", b"third", b"fourth", b"fifth")))
        exchange.compression = Compression("gzip", gzip.compress)
        assert not exchange.try_write(b"sixth")

    run(scenario)


def test_messages_go_through_while_they_are_waited_for_and_what_is_refused_is_read():
    async def scenario():
        stream, through = OpenStream(), []

        def take(message):
            through.append(message)
            return message != b"no"

        exchange = made(stream)
        exchange.read_through(take)
        exchange.data(frame(b"early"), False)
        assert await exchange.read() == b"early"
        reading = asyncio.create_task(exchange.read())
        await asyncio.sleep(0)
        one = frame(b"one")
        exchange.data(one[:3], False)
        exchange.data(one[3:] + frame(b"two"), False)
        assert (through, stream.held) == ([b"one", b"two"], 0)
        exchange.data(frame(b"no") + frame(b"three"), False)
        exchange.data(frame(b"four"), True)
        assert [await reading, await exchange.read(), await exchange.read(), await exchange.read()] == [
            b"no", b"three", b"four", None,
        ]  # fmt: skip
        assert (through, stream.held) == ([b"one", b"two", b"no"], 0)

    run(scenario)


def test_what_is_no_message_ends_the_call_also_while_messages_go_through():
    async def scenario():
        exchange = made(OpenStream())
        exchange.read_through(lambda _: True)
        reading = asyncio.create_task(exchange.read())
        await asyncio.sleep(0)
        exchange.data(b"\1" + frame(b"packed, and nobody says how")[1:], False)
        with pytest.raises(Internal, match="marked as compressed"):
            await reading

    run(scenario)


def test_a_bug_while_messages_go_through_is_that_of_the_call_and_not_of_its_connection():
    def take(_message):
        raise ZeroDivisionError

    async def scenario():
        exchange = made(OpenStream())
        exchange.read_through(take)
        reading = asyncio.create_task(exchange.read())
        await asyncio.sleep(0)
        exchange.data(frame(b"message"), False)
        with pytest.raises(ZeroDivisionError):
            await reading

    run(scenario)


def test_a_message_longer_than_protobuf_carries_is_left_to_whoever_can_end_the_call(monkeypatch):
    monkeypatch.setattr("tritonpy_frontend_h2.exchange.LONGEST", 5)

    async def scenario():
        stream = OpenStream()
        exchange = made(stream)
        await exchange.write(b"first")
        assert not exchange.try_write(b"longer")
        assert exchange.try_write(b"short")
        assert stream.sent == frame(b"first") + frame(b"short")

    run(scenario)
