"""A thousand clients that ask for endless streams and do not read them."""

from __future__ import annotations

import json
import resource
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack

import psutil
import pytest

from .pouring import ANSWER_BYTES, pouring_server

CONSUMERS = 1000
MAX_ANSWERS = 8
MAX_BYTES = 16 * 1024
HIGH_WATER = 64 * 1024  # asyncio's: from there on a transport is written to no more
EVENT_BYTES = ANSWER_BYTES + 200
PATIENCE_S = 120


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def ask(port: int, count: int, name: str, receive_buffer: int | None = None) -> socket.socket:
    """Ask for a stream of so many answers, or one without end, and read nothing of it."""
    connection = socket.socket()
    if receive_buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.settimeout(PATIENCE_S)
    connection.connect(("127.0.0.1", port))
    body = json.dumps({"COUNT": count, "id": name}).encode()
    connection.sendall(
        b"POST /v2/models/pouring/generate_stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
        % (len(body), body)
    )
    return connection


def indices(connection: socket.socket) -> list[int]:
    """Read a stream to its end and return the numbers of its answers."""
    with connection.makefile("rb") as lines:
        return [json.loads(line[6:])["INDEX"] for line in lines if line.startswith(b"data: ")]


@pytest.fixture
def many_descriptors():
    """Allow this process two descriptors per consumer, and some."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * CONSUMERS + 500
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"needs {needed} file descriptors, this machine allows {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_descriptors")
def test_a_thousand_slow_consumers_hold_their_buffers_and_no_more(tmp_path):
    with (
        pouring_server(tmp_path, max_waiting_answers=MAX_ANSWERS, max_waiting_bytes=MAX_BYTES) as (server, poured),
        ExitStack() as open_sockets,
    ):
        port = int(server.http.rpartition(":")[2])
        http = server.server.frontends["http"]._server
        # What the kernel holds of a stream does not grow as it sees fit either: each connection takes this over from the socket that listens.
        http._acceptor._sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 * 1024)
        before = psutil.Process().memory_info().rss
        slow = [open_sockets.enter_context(ask(port, -1, str(n), receive_buffer=4096)) for n in range(CONSUMERS)]
        wait_for(lambda: len(poured) == CONSUMERS, "every request came to the model")
        endless = list(poured)
        rooms = [one.request.tag.room for one in endless]
        connections = list(http.server_state.connections)
        transports = [connection.transport for connection in connections]

        def all_stand_still() -> bool:
            return all(one.waits for one in endless) and all(connection.flow.write_paused for connection in connections)

        def assert_bounded() -> None:
            assert all(room.answers <= MAX_ANSWERS for room in rooms)
            assert all(room.nbytes < MAX_BYTES + ANSWER_BYTES for room in rooms)
            assert all(transport.get_write_buffer_size() <= HIGH_WATER + EVENT_BYTES for transport in transports)

        wait_for(all_stand_still, "every stream ran full")
        assert len(transports) == CONSUMERS
        assert_bounded()
        given = {one.request.id: one.given for one in endless}

        # One beside them that reads gets everything, and meanwhile nobody works for those that do not.
        fast = open_sockets.enter_context(ask(port, 2000, "fast"))
        assert indices(fast) == list(range(2000))
        assert {one.request.id: one.given for one in endless} == given
        assert_bounded()

        # One of them that begins to read gets on, alone.
        reader = slow[0].makefile("rb")
        answers = [reader.readline() for _ in range(6000)]
        reader.close()
        read = [json.loads(line[6:])["INDEX"] for line in answers if line.startswith(b"data: ")]
        assert read == list(range(len(read)))
        assert len(read) > given["0"]
        wait_for(all_stand_still, "it ran full again")
        assert {one.request.id for one in endless if one.given != given[one.request.id]} == {"0"}
        assert_bounded()

        grown = psutil.Process().memory_info().rss - before
        waiting, unsent = sum(room.nbytes for room in rooms), sum(one.get_write_buffer_size() for one in transports)
        print(
            f"{CONSUMERS} consumers: {waiting} bytes wait in rooms, {unsent} in transports; resident memory grew by {grown}"
        )

        # When they leave, their requests end.
        open_sockets.close()
        wait_for(lambda: all(one.request.answered for one in poured), "every request ended")
        assert all(one.request.cancelled for one in endless)
        wait_for(lambda: not any(room.answers for room in rooms), "nothing waits any more")
