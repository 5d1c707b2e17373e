from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from tritonpy_bench.inputs.corpus import make_corpus
from tritonpy_bench.load.exchange import Exchange, Lost
from tritonpy_bench.load.jobs import Job
from tritonpy_bench.wire.address import Address
from tritonpy_bench.wire.http_carrier import HttpCarrier
from tritonpy_bench.wire.http_messages import HttpMessages

from .facts import INTS, model, options, target
from .toy_http import ToyHttp, answer


class Talk:
    """A carrier, and a future for the end of its request."""

    def __init__(self, port):
        told = options(url=f"127.0.0.1:{port}")
        facts = target(model(INTS))
        messages = HttpMessages(facts, told, make_corpus(facts.model, told), None)
        self.carrier = HttpCarrier(0, Address("127.0.0.1", port), None, messages)
        self.carrier.on_end = lambda carrier, exchange, error: self.ended.set_result(error)

    async def ask(self):
        self.ended = asyncio.get_running_loop().create_future()
        self.carrier.send(Exchange(Job(0), 0, 0, 0))
        return await self.ended


@asynccontextmanager
async def talking(*answers):
    """Have a server that gives these answers in turn."""
    left = list(answers)

    async def respond(method, path, body):
        return left.pop(0)

    toy = ToyHttp(respond)
    server = await toy.start()
    talk = Talk(toy.port)
    try:
        yield talk, toy
    finally:
        talk.carrier.close()
        server.close()


def run(coroutine):
    return asyncio.run(coroutine())


def test_requests_follow_each_other_on_one_connection():
    async def main():
        async with talking(answer(), answer(b"x" * 300_000), answer()) as (talk, toy):
            assert [await talk.ask() for _ in range(3)] == [None] * 3
            assert (toy.connections, len(toy.heads)) == (1, 3)

    run(main)


def test_an_answer_in_pieces_and_in_chunks_is_one():
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    early = b"HTTP/1.1 103 Early Hints\r\n\r\n"

    async def main():
        async with talking(chunked, early + answer()) as (talk, _):
            assert [await talk.ask() for _ in range(2)] == [None] * 2

    run(main)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (answer({"error": "no room"}, "503 Busy"), "503: no room"),
        (answer({"detail": "Not Found"}, "404 x"), "404: Not Found"),
        (answer(b"<html>oops</html>", "502 Bad"), "502: <html>oops</html>"),
        (answer(b"", "500 x"), "500: no text"),
        (answer(b'"text"', "400 x"), '400: "text"'),
    ],
)
def test_an_error_is_its_status_and_the_servers_text(raw, text):
    async def main():
        async with talking(raw, answer()) as (talk, toy):
            assert await talk.ask() == text
            assert await talk.ask() is None  # what was in the first answer is not in the second
            assert toy.connections == 1

    run(main)


def test_a_connection_that_is_cut_is_an_error_and_is_made_anew():
    async def main():
        async with talking(None, answer()) as (talk, toy):
            error = await talk.ask()
            assert isinstance(error, Lost)
            assert error == "the server closed the connection before it answered"
            assert await talk.ask() is None
            assert toy.connections == 2

    run(main)


def test_a_server_that_closes_after_each_answer_is_obeyed():
    async def main():
        closing = answer(more="Connection: close\r\n")
        async with talking(closing, closing) as (talk, toy):
            assert [await talk.ask() for _ in range(2)] == [None, None]
            assert toy.connections == 2

    run(main)


def test_what_a_connection_says_after_it_was_given_up_is_nobodys():
    """Its end may come when the next one carries a request already."""

    async def main():
        async with talking(answer(more="Connection: close\r\n"), answer()) as (talk, _):
            await talk.carrier.open()
            first = talk.carrier._connection
            assert await talk.ask() is None
            await talk.carrier.open()
            asked = asyncio.ensure_future(talk.ask())
            await asyncio.sleep(0)
            first.connection_lost(None)
            assert not asked.done()
            assert await asked is None

    run(main)


def test_what_is_no_http_is_an_error():
    async def main():
        async with talking(b"\x16\x03\x01 this is TLS\r\n\r\n", answer()) as (talk, _):
            error = await talk.ask()
            assert error.startswith("the answer is no HTTP: ")
            assert await talk.ask() is None

    run(main)


def test_where_nobody_listens_there_is_no_connection(free_port):
    async def main():
        talk = Talk(free_port)
        error = await talk.ask()
        assert isinstance(error, Lost)
        assert error.startswith("no connection: ")

    run(main)
