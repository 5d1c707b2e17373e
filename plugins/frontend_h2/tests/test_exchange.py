from __future__ import annotations

import asyncio

from hpack import Decoder

from plugins.frontend_grpc.tests.fake_engine import run
from plugins.frontend_grpc.tests.wire.scenarios.exchange import *  # noqa: F403
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
