from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from tritonpy_load_generator.inputs.corpus import make_corpus
from tritonpy_load_generator.loops.exchange import Exchange, LostConnection
from tritonpy_load_generator.loops.jobs import Job
from tritonpy_load_generator.wire.address import Address
from tritonpy_load_generator.wire.http_messages import HttpMessages
from tritonpy_load_generator.wire.http_sender import HttpSender
from tritonpy_testing.toy_http import ToyHttp, http_response

from .metadata import INTS, model, options, target


class SenderHarness:
    """A sender and a future for the end of its request."""

    def __init__(self, port):
        given = options(url=f"127.0.0.1:{port}")
        description = target(model(INTS))
        messages = HttpMessages(description, given, make_corpus(description.model, given), None)
        self.sender = HttpSender(0, Address("127.0.0.1", port), None, messages)
        self.sender.on_end = lambda sender, exchange, error: self.ended.set_result(error)

    async def send(self):
        self.ended = asyncio.get_running_loop().create_future()
        self.sender.send(Exchange(Job(0), 0, 0, 0))
        return await self.ended


@asynccontextmanager
async def running_harness(*responses):
    """Run a server that sends these responses in order."""
    left = list(responses)

    async def respond(method, path, body):
        return left.pop(0)

    toy = ToyHttp(respond)
    server = await toy.start()
    harness = SenderHarness(toy.port)
    try:
        yield harness, toy
    finally:
        harness.sender.close()
        server.close()


def run(coroutine):
    return asyncio.run(coroutine())


def test_requests_follow_each_other_on_one_connection():
    async def main():
        async with running_harness(
            http_response(), http_response(b"x" * 300_000), http_response()
        ) as (harness, toy):
            assert [await harness.send() for _ in range(3)] == [None] * 3
            assert (toy.connections, len(toy.heads)) == (1, 3)

    run(main)


def test_chunked_and_informational_responses_are_handled():
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    early = b"HTTP/1.1 103 Early Hints\r\n\r\n"

    async def main():
        async with running_harness(chunked, early + http_response()) as (harness, _):
            assert [await harness.send() for _ in range(2)] == [None] * 2

    run(main)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (http_response({"error": "no room"}, "503 Busy"), "503: no room"),
        (http_response({"detail": "Not Found"}, "404 x"), "404: Not Found"),
        (http_response(b"<html>oops</html>", "502 Bad"), "502: <html>oops</html>"),
        (http_response(b"", "500 x"), "500: no text"),
        (http_response(b'"text"', "400 x"), '400: "text"'),
    ],
)
def test_an_error_is_its_status_and_the_servers_text(raw, text):
    async def main():
        async with running_harness(raw, http_response()) as (harness, toy):
            assert await harness.send() == text
            assert await harness.send() is None  # nothing of the first response remains
            assert toy.connections == 1

    run(main)


def test_a_cut_connection_is_an_error_and_is_reopened():
    async def main():
        async with running_harness(None, http_response()) as (harness, toy):
            error = await harness.send()
            assert isinstance(error, LostConnection)
            assert error == "the server closed the connection before it responded"
            assert await harness.send() is None
            assert toy.connections == 2

    run(main)


def test_connection_close_is_honored():
    async def main():
        closing = http_response(more="Connection: close\r\n")
        async with running_harness(closing, closing) as (harness, toy):
            assert [await harness.send() for _ in range(2)] == [None, None]
            assert toy.connections == 2

    run(main)


def test_late_bytes_of_an_abandoned_connection_are_ignored():
    """The old connection may end when the next one already has a request in flight."""

    async def main():
        async with running_harness(
            http_response(more="Connection: close\r\n"), http_response()
        ) as (harness, _):
            await harness.sender.open()
            first = harness.sender._connection
            assert await harness.send() is None
            await harness.sender.open()
            pending = asyncio.ensure_future(harness.send())
            await asyncio.sleep(0)
            first.connection_lost(None)
            assert not pending.done()
            assert await pending is None

    run(main)


def test_a_response_that_is_not_http_is_an_error():
    async def main():
        async with running_harness(b"\x16\x03\x01 this is TLS\r\n\r\n", http_response()) as (
            harness,
            _,
        ):
            error = await harness.send()
            assert error.startswith("the response is not HTTP: ")
            assert await harness.send() is None

    run(main)


def test_a_refused_connection_is_an_error(free_port):
    async def main():
        harness = SenderHarness(free_port)
        error = await harness.send()
        assert isinstance(error, LostConnection)
        assert error.startswith("no connection: ")

    run(main)
