from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from tritonpy_engine_rpc.async_rpc_client import AsyncRpcClient
from tritonpy_ipc import Kind, ProtocolError
from tritonpy_types.errors import Unavailable


class FakeConnection:
    """A connection that records the sent frames."""

    def __init__(self):
        self.sent = []

    def send(self, kind, words, extras):
        self.sent.append((kind, words, extras))


def reply(number, outcome):
    return SimpleNamespace(words=[number], extras={"outcome": outcome})


def on_a_loop(play):
    """Run `play(client, connection)`."""

    async def run():
        connection = FakeConnection()
        client = AsyncRpcClient(
            asyncio.get_running_loop(), connection, lambda frame: frame.extras["outcome"]
        )
        await play(client, connection)

    asyncio.run(run())


async def calling(client, verb="look"):
    query = asyncio.create_task(client.call(verb, {"at": 1}))
    await asyncio.sleep(0)
    return query


def test_each_query_gets_its_own_result():
    async def play(client, connection):
        first, second = await calling(client, "one"), await calling(client, "two")
        assert [(kind, extras["verb"]) for kind, _, extras in connection.sent] == [
            (Kind.QUERY, "one"),
            (Kind.QUERY, "two"),
        ]
        client.handle_result(reply(2, "b"))
        client.handle_result(reply(1, "a"))
        assert (await first, await second) == ("a", "b")

    on_a_loop(play)


def test_an_error_is_raised_to_its_caller():
    async def play(client, _connection):
        query = await calling(client)
        client.handle_result(reply(1, Unavailable("not now")))
        with pytest.raises(Unavailable, match="not now"):
            await query

    on_a_loop(play)


def test_a_result_without_a_query_is_a_protocol_error():
    async def play(client, _connection):
        query = await calling(client)
        client.handle_result(reply(1, None))
        assert await query is None
        for number in (1, 2):
            with pytest.raises(ProtocolError, match=f"query {number}, which is not in flight"):
                client.handle_result(reply(number, None))

    on_a_loop(play)


def test_a_result_for_a_cancelled_caller_is_dropped():
    async def play(client, _connection):
        query = await calling(client)
        query.cancel()
        await asyncio.gather(query, return_exceptions=True)
        client.handle_result(reply(1, "late"))

    on_a_loop(play)


@pytest.mark.parametrize("outcome", [None, Unavailable("it died")])
def test_close_finishes_all_queries_with_the_outcome(outcome):
    async def play(client, _connection):
        tasks = [await calling(client) for _ in range(2)]
        client.close(outcome)
        assert await asyncio.gather(*tasks, return_exceptions=True) == [outcome, outcome]

    on_a_loop(play)
