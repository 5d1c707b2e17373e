from __future__ import annotations

import socket
import struct

import pytest

from tritonpy_http1.connection import MAX_AHEAD

from .test_protocol import BODY, SECONDS, connect, read_reply_from, request, wait_until

METADATA = b"GET /v2 HTTP/1.1\r\nhost: x\r\n\r\n"
GARBAGE = b"garbage\r\n\r\n"
BAD_CHUNK = b"POST /v2/models/echo/infer HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nno size\r\n"


def reset(stream: socket.socket) -> None:
    """Disconnect with a reset, like a killed process."""
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.close()


@pytest.mark.parametrize(
    "behind", [[request()], [METADATA], [METADATA, request()], [request()[:-5]], [b"GET /v2 HT"]]
)
@pytest.mark.parametrize("leave", [socket.socket.close, reset])
def test_a_disconnect_with_pipelined_requests_cancels_the_running_one(
    server, engine, behind, leave
):
    engine.hold = True
    stream = connect(server)
    stream.sendall(request())
    assert engine.arrived.wait(SECONDS)
    for each in behind:
        stream.sendall(each)
    leave(stream)
    wait_until(lambda: engine.requests[0].cancelled, server)
    server.loop.call_soon_threadsafe(engine.release)
    wait_until(lambda: not server.frontend._server.server_state.connections, server)
    assert len(engine.requests) == 1
    engine.hold = False
    assert server.infer(BODY).status == 200


def test_the_second_pipelined_request_is_cancelled_while_it_runs(server, engine):
    engine.hold = True
    stream = connect(server)
    stream.sendall(request() * 3)
    assert engine.arrived.wait(SECONDS)
    server.loop.call_soon_threadsafe(engine.release)
    wait_until(lambda: len(engine.requests) == 2, server)
    stream.close()
    wait_until(lambda: engine.requests[1].cancelled, server)
    assert not engine.requests[0].cancelled


@pytest.mark.parametrize("before", [1, 2, 3])
@pytest.mark.parametrize("behind", [GARBAGE, request() + GARBAGE, BAD_CHUNK])
def test_a_refusal_after_pipelined_requests_closes_the_connection(
    server, engine, caplog, before, behind
):
    engine.hold = True
    with connect(server) as stream:
        stream.sendall(request() * before + behind)
        assert engine.arrived.wait(SECONDS)
        engine.hold = False
        server.loop.call_soon_threadsafe(engine.release)
        with stream.makefile("rb") as file:
            statuses = []
            while 400 not in statuses:
                statuses.append(read_reply_from(file)[0])
            assert file.read() == b""
    assert statuses == [200] * (len(statuses) - 1) + [400]
    assert len(engine.requests) >= before
    wait_until(lambda: not server.frontend._server.server_state.connections, server)
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("leave", [socket.socket.close, reset])
def test_a_disconnect_before_a_pipelined_refusal_is_handled(server, engine, caplog, leave):
    engine.hold = True
    stream = connect(server)
    stream.sendall(request() + GARBAGE)
    assert engine.arrived.wait(SECONDS)
    wait_until(lambda: "refused a request" in caplog.text, server)
    leave(stream)
    engine.hold = False
    server.loop.call_soon_threadsafe(engine.release)
    wait_until(lambda: not server.frontend._server.server_state.connections, server)
    assert not [record for record in caplog.records if record.exc_info]


def test_many_pipelined_requests_are_served_in_order(server, engine):
    with connect(server) as stream:
        engine.hold = True
        stream.sendall(request())
        assert engine.arrived.wait(SECONDS)
        stream.sendall((METADATA + request() * 9) * 20)
        engine.hold = False
        server.loop.call_soon_threadsafe(engine.release)
        file = stream.makefile("rb")
        for _ in range(1 + 20 * 10):
            assert read_reply_from(file)[0] == 200


def test_reading_pauses_with_many_pipelined_requests(server, engine):
    engine.hold = True
    with connect(server) as stream:
        stream.sendall(request())
        assert engine.arrived.wait(SECONDS)
        (live,) = server.frontend._server.server_state.connections
        stream.setblocking(False)
        sent = 0
        while (
            sent <= MAX_AHEAD or not live.flow.read_paused
        ):  # uvicorn pauses briefly for each waiting request
            try:
                sent += stream.send(METADATA * 100)
            except BlockingIOError:
                continue
        assert live._ahead <= 2 * MAX_AHEAD
        engine.hold = False
        server.loop.call_soon_threadsafe(engine.release)
        wait_until(lambda: not live.flow.read_paused, server)
