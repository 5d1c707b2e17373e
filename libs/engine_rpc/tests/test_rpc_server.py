from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any

import msgspec
import pytest

from tritonpy_engine_rpc.connection import Connection
from tritonpy_engine_rpc.rpc_server import RpcHandlers, RpcServer
from tritonpy_ipc import Endpoint, Frame, Kind, ProtocolError
from tritonpy_types.errors import QueueFull

LOG = logging.getLogger("tritonpy.model")


class ValueMessage(msgspec.Struct):
    """The arguments of the verbs in these tests."""

    value: int


async def later(message: ValueMessage) -> int:
    await asyncio.sleep(0)
    return message.value + 1


async def failing(_send_message: ValueMessage) -> None:
    raise ValueError("secret")


def refusing(_send_message: ValueMessage) -> None:
    raise QueueFull("no room")


VERBS: RpcHandlers = {
    "now": (ValueMessage, lambda message: 2 * message.value),
    "later": (ValueMessage, later),
    "refusing": (ValueMessage, refusing),
    "failing": (ValueMessage, failing),
}


def run_server(
    act: Callable[[RpcServer, Callable[[int, str], Frame]], Awaitable[None]],
) -> list[dict[str, Any]]:
    """Run `act` with a server and a function that makes query frames; return the results."""
    replies: list[dict[str, Any]] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with closing(theirs):
            connection = Connection(loop, ours, lambda frame: None, lambda reason: None)
            await act(RpcServer(loop, connection, VERBS, LOG), _question)
            connection.close()
            theirs.setblocking(False)
            end = Endpoint()
            while data := theirs.recv(1 << 16):
                replies.extend(
                    {"number": frame.words[0], **frame.extras} for frame in end.feed(data)
                )

    asyncio.run(scenario())
    return replies


def _question(number: int, verb: str, value: object = 3) -> Frame:
    data, _ = Endpoint().compose(
        Kind.QUERY, [number], extras={"verb": verb, "arguments": {"value": value}}
    )
    (frame,) = Endpoint().feed(data)
    return frame


def test_queries_get_results_now_or_later_or_errors(caplog: pytest.LogCaptureFixture) -> None:
    async def act(server: RpcServer, query: Callable[[int, str], Frame]) -> None:
        for number, verb in enumerate(VERBS, 1):
            server.handle_query(query(number, verb))
        while server._tasks:
            await asyncio.wait(set(server._tasks))

    replies = {reply["number"]: reply for reply in run_server(act)}
    assert replies[1]["value"] == 6
    assert replies[2]["value"] == 4
    assert replies[3]["error"] == [4, "no room", "QueueFull"]
    assert "secret" not in replies[4]["error"][1]
    assert "secret" in caplog.text


def test_notifications_have_no_results_and_errors_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def act(server: RpcServer, query: Callable[[int, str], Frame]) -> None:
        server.handle_notification(query(1, "now"))
        server.handle_notification(query(2, "refusing"))

    assert run_server(act) == []
    assert "'refusing' failed: no room" in caplog.text


def test_malformed_frames_are_protocol_errors() -> None:
    async def act(server: RpcServer, query: Callable[..., Frame]) -> None:
        with pytest.raises(ProtocolError, match="unknown verb 'nothing'"):
            server.handle_query(query(1, "nothing"))
        with pytest.raises(ProtocolError, match="invalid message"):
            server.handle_notification(query(2, "now", "x"))
        server.handle_query(query(3, "later"))
        with pytest.raises(ProtocolError, match="already in flight"):
            server.handle_query(query(3, "later"))
        server.close()

    run_server(act)
