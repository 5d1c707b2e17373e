from __future__ import annotations

import asyncio
import gzip

import pytest
from hpack import Decoder

from plugins.frontend_grpc.tests.fake_engine import run
from plugins.frontend_grpc.tests.wire.scenarios.frames import frame
from plugins.frontend_grpc.tests.wire.scenarios.task_call import *  # noqa: F403
from tritonpy import Internal
from tritonpy_frontend_grpc.wire.compression import Compression
from tritonpy_frontend_grpc.wire.head import CallHead
from tritonpy_frontend_h2.task_call import H2TaskCall
from tritonpy_http2 import Http2CallStream


class FullStream(Http2CallStream):
    """A stream whose client does not read."""

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
        assert stream.sent == b"".join(map(frame, (b"first", b"second", b"third", b"fourth", b"fifth")))
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
    monkeypatch.setattr("tritonpy_frontend_h2.task_call.MAX_MESSAGE_BYTES", 5)

    async def scenario():
        stream = ReadingStream()
        call = make_call(stream)
        await call.write(b"first")
        assert not call.try_write(b"longer")
        assert call.try_write(b"short")
        assert stream.sent == frame(b"first") + frame(b"short")

    run(scenario)
