"""A thousand clients that request endless streams and do not read them."""

from __future__ import annotations

import json
import resource
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack

import psutil
import pytest

from .endless_backend import RESPONSE_BYTES, endless_server

CONSUMERS = 1000
MAX_RESPONSES = 8
MAX_BYTES = 16 * 1024
HIGH_WATER = 64 * 1024  # asyncio's high-water mark, which pauses writing
EVENT_BYTES = RESPONSE_BYTES + 200
WAIT_S = 120


def wait_for(condition: Callable[[], bool], event: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, event
        time.sleep(0.01)


def open_stream(
    port: int, count: int, name: str, receive_buffer: int | None = None
) -> socket.socket:
    """Request a stream of `count` responses, endless if negative, and read nothing."""
    connection = socket.socket()
    if receive_buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.settimeout(WAIT_S)
    connection.connect(("127.0.0.1", port))
    body = json.dumps({"COUNT": count, "id": name}).encode()
    connection.sendall(
        b"POST /v2/models/endless/generate_stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
        % (len(body), body)
    )
    return connection


def indices(connection: socket.socket) -> list[int]:
    """Read a complete stream and return the indices of its responses."""
    with connection.makefile("rb") as lines:
        return [json.loads(line[6:])["INDEX"] for line in lines if line.startswith(b"data: ")]


@pytest.fixture
def many_descriptors():
    """Raise the descriptor limit to two per consumer and some more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * CONSUMERS + 500
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"needs {needed} file descriptors, this machine allows {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def growth(before: int) -> int:
    """Return the bytes of resident memory that this process has more than `before`."""
    return int(psutil.Process().memory_info().rss) - before


@pytest.mark.usefixtures("many_descriptors")
def assert_bounded(flow_controls, transports) -> None:
    assert all(flow_control.responses <= MAX_RESPONSES for flow_control in flow_controls)
    assert all(flow_control.nbytes < MAX_BYTES + RESPONSE_BYTES for flow_control in flow_controls)
    assert all(
        transport.get_write_buffer_size() <= HIGH_WATER + EVENT_BYTES for transport in transports
    )


def read_indices(stream, lines: int) -> list[int]:
    """Read `lines` lines of an event stream and return the INDEX of each event."""
    with stream.makefile("rb") as reader:
        read = [reader.readline() for _ in range(lines)]
    return [json.loads(line[6:])["INDEX"] for line in read if line.startswith(b"data: ")]


def test_a_thousand_slow_consumers_use_bounded_memory(tmp_path):
    with (
        endless_server(
            tmp_path, max_waiting_answers=MAX_RESPONSES, max_waiting_bytes=MAX_BYTES
        ) as (server, served),
        ExitStack() as open_sockets,
    ):
        port = int(server.http.rpartition(":")[2])
        http = server.server.frontends["http"]._server
        # Connections inherit the buffer size, so that the kernel does not grow it.
        http._acceptor._sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 * 1024)
        before = psutil.Process().memory_info().rss
        slow = [
            open_sockets.enter_context(open_stream(port, -1, str(n), receive_buffer=4096))
            for n in range(CONSUMERS)
        ]
        wait_for(lambda: len(served) == CONSUMERS, "every request reached the model")
        endless = list(served)
        flow_controls = [one.request.tag.flow_control for one in endless]
        connections = list(http.server_state.connections)
        transports = [connection.transport for connection in connections]

        def all_blocked() -> bool:
            return all(one.is_waiting for one in endless) and all(
                connection.flow.write_paused for connection in connections
            )

        wait_for(all_blocked, "every stream blocked")
        assert len(transports) == CONSUMERS
        assert_bounded(flow_controls, transports)
        sent = {one.request.id: one.sent for one in endless}

        # A reading client gets all responses. Meanwhile, none are produced for the others.
        fast = open_sockets.enter_context(open_stream(port, 2000, "fast"))
        assert indices(fast) == list(range(2000))
        assert {one.request.id: one.sent for one in endless} == sent
        assert_bounded(flow_controls, transports)

        # If one client starts to read, only its stream continues.
        read = read_indices(slow[0], 6000)
        assert read == list(range(len(read)))
        assert len(read) > sent["0"]
        wait_for(all_blocked, "the stream blocked again")
        assert {one.request.id for one in endless if one.sent != sent[one.request.id]} == {"0"}
        assert_bounded(flow_controls, transports)

        waiting = sum(flow_control.nbytes for flow_control in flow_controls)
        unsent = sum(transport.get_write_buffer_size() for transport in transports)
        print(f"{waiting} bytes wait, {unsent} are in transports; memory grew by {growth(before)}")

        # Disconnecting ends the requests.
        open_sockets.close()
        wait_for(lambda: all(one.request.finished for one in served), "every request ended")
        assert all(one.request.cancelled for one in endless)
        wait_for(
            lambda: not any(flow_control.responses for flow_control in flow_controls),
            "no response waits",
        )
