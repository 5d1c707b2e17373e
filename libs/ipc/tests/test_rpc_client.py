from __future__ import annotations

from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest

from tritonpy_ipc import Kind
from tritonpy_ipc.rpc_client import RpcClient

from .remote_end import WAIT_S, Server


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def test_each_query_gets_its_own_result(server: Server) -> None:
    rpc_client = RpcClient(server.channel)
    replies: dict[int, Any] = {}
    threads = [
        Thread(
            target=lambda number=number: replies.update(
                {number: rpc_client.call("double", {"of": number}).extras}
            )
        )
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    queries = [server.next() for _ in threads]
    assert {frame.extras["verb"] for frame in queries} == {"double"}
    for frame in reversed(queries):
        server.send(
            Kind.QUERY_RESULT,
            frame.words[:1],
            extras={"value": 2 * frame.extras["arguments"]["of"]},
        )
    for thread in threads:
        thread.join(WAIT_S)
    assert replies == {number: {"value": 2 * number} for number in range(8)}


def test_a_result_without_a_query_is_ignored(server: Server) -> None:
    rpc_client = RpcClient(server.channel)
    server.send(Kind.QUERY_RESULT, (99,), extras={"value": 1})
    server.channel.drain()
    thread = Thread(target=lambda: rpc_client.call("anything", {}))
    thread.start()
    server.send(Kind.QUERY_RESULT, server.next().words, extras={"value": 1})
    thread.join(WAIT_S)
    assert not thread.is_alive()
