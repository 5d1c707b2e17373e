"""Behavior of a connection."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket

import numpy as np

from .raw_http import paused_loop

BODY = json.dumps(
    {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1], "data": [1]}]}
).encode()
SECONDS = 30


def request(body=BODY, headers="", path="/v2/models/echo/infer", version="1.1"):
    head = f"POST {path} HTTP/{version}\r\nhost: x\r\ncontent-length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


def connect(server):
    return socket.create_connection(("127.0.0.1", server.port), SECONDS)


def read_reply(stream, method="POST"):
    """Read one response from a socket that stays open."""
    response = http.client.HTTPResponse(stream, method=method)
    response.begin()
    body = response.read()
    response.close()
    return response.status, body, response


def read_reply_from(file):
    """Read one of several responses from a file: status and body."""
    status = int(file.readline().split()[1])
    headers = dict(line.split(b": ", 1) for line in iter(file.readline, b"\r\n"))
    lengths = {name.lower(): value for name, value in headers.items()}
    return status, file.read(int(lengths[b"content-length"]))


def wait_until(condition, server):
    async def poll():
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    server.run(poll())


def test_a_connection_serves_inference_and_other_requests(server):
    connection = server.connect()
    for _ in range(3):
        connection.request("POST", "/v2/models/echo/infer?x=1", BODY)
        assert json.loads(connection.getresponse().read())["model_name"] == "echo"
        connection.request("GET", "/v2")
        assert json.loads(connection.getresponse().read())["name"] == "triton"
    connection.close()


def test_pipelined_requests_are_served_in_order(server, engine):
    engine.hold = True
    with connect(server) as stream:
        other = b"GET /v2 HTTP/1.1\r\nhost: x\r\n\r\n"
        stream.sendall(request() + other + request())
        assert engine.arrived.wait(SECONDS)
        engine.hold = False
        server.loop.call_soon_threadsafe(engine.release)
        file = stream.makefile("rb")

        class Shared:
            def makefile(self, mode):
                return _Unclosed(file)

        names = [sorted(json.loads(read_reply(Shared())[1]))[0] for _ in range(3)]
        file.close()
        assert names == ["model_name", "extensions", "model_name"]


class _Unclosed:
    """Prevents http.client from closing the stream after the first response."""

    def __init__(self, file):
        self._file = file

    def __getattr__(self, name):
        return getattr(self._file, name)

    def close(self):
        pass


def test_a_body_in_many_parts_is_joined(server):
    array = np.random.default_rng(2).random(300_000)
    header = {
        "inputs": [
            {
                "name": "X",
                "datatype": "FP64",
                "shape": [300_000],
                "parameters": {"binary_data_size": array.nbytes},
            }
        ],
        "parameters": {"binary_data_output": True},
    }
    raw = json.dumps(header).encode()
    reply = server.infer(raw + array.tobytes(), {"Inference-Header-Content-Length": str(len(raw))})
    assert reply.body[int(reply.headers["inference-header-content-length"]) :] == array.tobytes()


def test_a_chunked_body_is_read(server):
    connection = server.connect()
    connection.request(
        "POST", "/v2/models/echo/infer", iter([BODY[:5], BODY[5:]]), encode_chunked=True
    )
    assert connection.getresponse().status == 200
    connection.close()


def test_too_many_chunks_close_the_connection(server):
    with connect(server) as stream:
        stream.sendall(
            b"POST /v2/models/echo/infer HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        stream.sendall(b"1\r\nx\r\n" * 65_537)
        status, body, response = read_reply(stream)
        assert status == 400
        assert json.loads(body)["error"].startswith(
            "Chunked request body exceeds maximum of 65536 non-empty chunks."
        )
        assert response.getheader("connection") == "close"
        assert stream.recv(1) == b""


def test_100_continue_is_sent_on_request(server):
    with connect(server) as stream:
        head, _, body = request(headers="expect: 100-continue\r\n").partition(b"\r\n\r\n")
        stream.sendall(head + b"\r\n\r\n")
        assert stream.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        stream.sendall(body)
        assert read_reply(stream)[0] == 200


def test_a_connection_is_closed_on_request(server):
    for options in ({"headers": "connection: close\r\n"}, {"version": "1.0"}):
        with connect(server) as stream:
            stream.sendall(request(**options))
            status, _, response = read_reply(stream)
            assert (status, response.getheader("connection")) == (200, "close")
            assert stream.recv(1) == b""


def test_a_disconnect_cancels_the_request(server, engine):
    engine.hold = True
    with connect(server) as stream:
        stream.sendall(request())
        assert engine.arrived.wait(SECONDS)
    wait_until(lambda: engine.requests[0].cancelled, server)
    server.loop.call_soon_threadsafe(engine.release)  # the late response finds a closed connection
    engine.hold = False
    assert server.infer(BODY).status == 200


def test_a_disconnect_during_the_body_leaves_nothing(server, engine):
    with connect(server) as stream:
        stream.sendall(request()[:-5])
    assert server.infer(BODY).status == 200
    assert len(engine.requests) == 1


def test_a_disconnect_with_pipelined_requests_leaves_nothing(server, engine):
    engine.hold = True
    with connect(server) as stream:
        stream.sendall(request() + request() + request())
        assert engine.arrived.wait(SECONDS)
    engine.hold = False
    server.loop.call_soon_threadsafe(engine.release)
    wait_until(lambda: not server.frontend._server.server_state.connections, server)
    assert server.frontend._service.calls._inflight == 0


def test_what_is_not_http_is_refused(server):
    with connect(server) as stream:
        stream.sendall(b"garbage\r\n\r\n")
        assert read_reply(stream)[0] == 400
    assert server.infer(BODY).status == 200


def test_no_delay_is_set_on_connections(server):
    connection = server.connect()
    connection.request("GET", "/v2")
    connection.getresponse().read()
    (live,) = server.frontend._server.server_state.connections
    accepted = live.transport.get_extra_info("socket")
    assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    connection.close()


def test_requests_with_a_cached_head_have_their_own_bodies(server, engine):
    with connect(server) as stream:
        file = stream.makefile("rb")
        for number in (1, 2, 3):
            body = BODY.replace(b"[1]}", b"[%d]}" % number)
            assert len(body) == len(BODY)
            stream.sendall(request(body))
            assert json.loads(read_reply_from(file)[1])["outputs"][0]["data"] == [number]
    assert len(engine.requests) == 3


def test_a_cached_head_waits_for_its_body(server, engine):
    with connect(server) as stream:
        file = stream.makefile("rb")
        for _ in range(2):
            stream.sendall(request())
            assert read_reply_from(file)[0] == 200
        stream.sendall(request()[:-3])
        stream.sendall(request()[-3:] + b"GET /v2 HTTP/1.1\r\nhost: x\r\n\r\n")
        assert read_reply_from(file)[0] == 200
        assert json.loads(read_reply_from(file)[1])["name"] == "triton"


def test_a_pipelined_request_with_a_cached_head_waits(server, engine):
    with connect(server) as stream:
        file = stream.makefile("rb")
        stream.sendall(request())
        assert read_reply_from(file)[0] == 200
        engine.hold = True
        stream.sendall(request())
        wait_until(lambda: len(engine.requests) == 2, server)
        stream.sendall(request())
        engine.hold = False
        server.loop.call_soon_threadsafe(engine.release)
        assert [read_reply_from(file)[0] for _ in range(2)] == [200, 200]


def test_an_idle_connection_is_closed_and_a_busy_one_is_not(start_server, engine):
    server = start_server(keep_alive_s=1)
    with connect(server) as idle, connect(server) as busy:
        idle_file, busy_file = idle.makefile("rb"), busy.makefile("rb")
        engine.hold = True
        busy.sendall(request())
        assert engine.arrived.wait(SECONDS)
        with paused_loop(server):  # its next request has arrived when the idle period starts
            server.loop.call_soon_threadsafe(engine.release)
            busy.sendall(request())
        assert read_reply_from(busy_file)[0] == 200
        idle.sendall(b"GET /v2 HTTP/1.1\r\nhost: x\r\n\r\n")
        assert read_reply_from(idle_file)[0] == 200
        assert idle_file.read() == b""  # closed by the server
        engine.hold = False
        server.loop.call_soon_threadsafe(engine.release)
        assert read_reply_from(busy_file)[0] == 200
