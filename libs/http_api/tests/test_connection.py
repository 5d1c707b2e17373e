"""Invalid, oversized and slow requests."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tritonpy import InferResponse, Tensor

from .raw_http import (
    BODY,
    INFER,
    META,
    chunked,
    connect,
    connect_with,
    eventually,
    read_one,
    read_to_end,
    request,
    send_and_read,
)

INVALID = "Invalid HTTP request received."
LENGTH = f"content-length: {len(BODY)}\r\n"
H2C = "connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        b"garbage\r\n\r\n",
        b"get /v2 HTTP/1.1\r\nhost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        request(headers=LENGTH),
        request(headers="content-length: 3\r\n"),
        request(headers="content-length: 5, 5\r\n", length=False),
        request(headers="content-length: +5\r\n", length=False),
        request(headers="content-length: -1\r\n", length=False),
        request(headers=f"content-length: {'9' * 30}\r\n", length=False),
        request(chunked(BODY), "transfer-encoding: chunked\r\n"),
        request(chunked(BODY), "transfer-encoding: chunked, identity\r\n", length=False),
        request(b"zz\r\nabc\r\n0\r\n\r\n", "transfer-encoding: chunked\r\n", length=False),
        request(headers="name : value\r\n"),
        request(headers="name: one\r\n two\r\n"),
        request(headers="name: a\rb\r\n"),
        request(headers="name: a\0b\r\n"),
        request().replace(b"\r\n", b"\n"),
    ],
)
def test_ambiguous_requests_are_refused(server, engine, sent):
    assert send_and_read(server, sent) == (400, INVALID)
    assert engine.requests == []


@pytest.mark.parametrize(
    ("sent", "status", "text"),
    [
        (request(headers="host: y\r\n"), 400, "The request has more than one Host header"),
        (request(chunked(BODY), "transfer-encoding: chunked\r\n", version="1.0", length=False), 400, "Transfer-Encoding needs HTTP/1.1"),
        (request(chunked(BODY), "transfer-encoding: gzip, chunked\r\n", length=False), 501, "Transfer-Encoding must be 'chunked'"),
        (request(BODY, "transfer-encoding: identity\r\n", length=False), 501, "Transfer-Encoding must be 'chunked'"),
        (b"GET /v2 HTTP/2.0\r\nhost: x\r\n\r\n", 505, "Only HTTP/1.1 and HTTP/1.0 are supported"),
        (b"GET /v2\r\n\r\n", 505, "Only HTTP/1.1 and HTTP/1.0 are supported"),
        (b"BREW /v2 HTTP/1.1\r\nhost: x\r\n\r\n", 405, "Method Not Allowed"),
        (b"CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n", 404, "Not Found"),
    ],
)  # fmt: skip
def test_unsupported_requests_are_refused_with_the_reason(server, engine, sent, status, text):
    assert send_and_read(server, sent) == (status, text)
    assert engine.requests == []


def test_every_refusal_is_logged(server, caplog):
    send_and_read(server, b"garbage\r\n\r\n")
    assert "refused a request from 127.0.0.1:" in caplog.text
    assert INVALID in caplog.text
    assert server.infer(BODY).status == 200


@pytest.mark.parametrize("end", [b"\r\n\r\n", b""])
def test_an_oversized_head_is_refused(start_server, end):
    server = start_server(max_head_size=1000)
    sent = b"GET /v2 HTTP/1.1\r\nhost: x\r\nlong: " + b"a" * 1000
    assert send_and_read(server, sent + end) == (431, "The head of the request is too large")


def test_a_path_counts_as_part_of_the_head(start_server):
    server = start_server(max_head_size=1000)
    assert (
        send_and_read(server, b"GET /v2?" + b"a" * 1000 + b" HTTP/1.1\r\nhost: x\r\n\r\n")[0] == 431
    )


def test_an_oversized_head_in_parts_is_refused(start_server):
    server = start_server(max_head_size=100_000)
    with connect(server) as stream:
        stream.sendall(b"GET /v2 HTTP/1.1\r\nhost: x\r\nlong: ")
        for _ in range(120):
            stream.sendall(b"a" * 1000)
        assert b" 431 " in read_to_end(stream)


def test_too_many_headers_and_trailers_are_refused(start_server):
    server = start_server(max_headers=20)
    many = "".join(f"name-{number}: value\r\n" for number in range(30))
    few = "".join(f"name-{number}: value\r\n" for number in range(15))
    error = (431, "The request has too many headers")
    assert send_and_read(server, request(headers=many)) == error
    head = f"POST {INFER} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n{few}\r\n".encode()
    body = b"%x\r\n%s\r\n0\r\n" % (len(BODY), BODY)
    assert send_and_read(server, head + body + many.encode() + b"\r\n") == error
    with connect(server) as stream:
        stream.sendall(head + body + few.encode() + b"\r\n")
        assert read_one(stream)[0] == 200


def test_trailers_are_not_headers(server, engine):
    sent = request(
        b"%x\r\n%s\r\n0\r\ncontent-encoding: br\r\n\r\n" % (len(BODY), BODY),
        "transfer-encoding: chunked\r\n",
        length=False,
    )
    with connect(server) as stream:
        stream.sendall(sent)
        assert read_one(stream)[0] == 200


def test_a_refusal_is_sent_in_order(server, engine):
    engine.hold = True
    with connect(server) as stream:
        stream.sendall(request() + request() + b"garbage\r\n\r\n")
        eventually(lambda: engine.requests, server)
        engine.hold = False
        server.loop.call_soon_threadsafe(engine.release)
        assert [read_one(stream)[0] for _ in range(3)] == [200, 200, 400]
        assert stream.file.read() == b""


def test_an_invalid_pipelined_body_is_refused_in_order(server, engine):
    engine.hold = True
    with connect(server) as stream:
        broken = request(b"zz\r\n", "transfer-encoding: chunked\r\n", length=False)
        stream.sendall(request() + broken)
        eventually(lambda: engine.requests, server)
        engine.hold = False
        server.loop.call_soon_threadsafe(engine.release)
        assert [read_one(stream)[0] for _ in range(2)] == [200, 400]
        assert stream.file.read() == b""
    assert len(engine.requests) == 1


@pytest.mark.parametrize("path", ["/v2/repository/index", INFER])
def test_an_invalid_body_is_refused(server, path):
    with connect(server) as stream:
        stream.sendall(
            request(b"2\r\n{}\r\nzz\r\n", "transfer-encoding: chunked\r\n", path=path, length=False)
        )
        assert read_to_end(stream).startswith(b"HTTP/1.1 400 ")
    eventually(lambda: not server.frontend._server.server_state.tasks, server)
    assert server.infer(BODY).status == 200


def test_upgrade_requests_are_served_as_http1(server, engine):
    with connect(server) as stream:
        stream.sendall(
            request(headers=H2C)
            + META
            + request(path="/v2/repository/index", body=b'{"ready":true}', headers=H2C)
        )
        assert json.loads(read_one(stream)[2])["model_name"] == "echo"
        assert json.loads(read_one(stream)[2])["name"] == "triton"
        assert len(json.loads(read_one(stream)[2])) == 1
        sent = request(headers=H2C)
        stream.sendall(sent[:-7])
        stream.sendall(sent[-7:])
        assert json.loads(read_one(stream)[2])["model_name"] == "echo"
    assert len(engine.requests) == 2


def test_the_body_of_an_upgrade_request_is_not_a_request(server, engine):
    hidden = request(b"x" * 10, path="/v2/repository/models/echo/unload")
    with connect(server) as stream:
        stream.sendall(request(hidden, H2C))
        assert read_one(stream)[0] == 500  # not JSON
    assert engine.loads == []


def test_absolute_request_targets_are_accepted(server):
    with connect(server) as stream:
        stream.sendall(
            request(path=f"http://localhost:1{INFER}") + META.replace(b"/v2", b"HTTP://x/v2")
        )
        assert json.loads(read_one(stream)[2])["model_name"] == "echo"
        assert json.loads(read_one(stream)[2])["name"] == "triton"


@pytest.mark.parametrize(
    ("path", "status"), [("*", 404), ("/v2", 405), ("/nowhere", 404), (INFER, 405)]
)
def test_the_options_method_is_not_allowed(server, path, status):
    with connect(server) as stream:
        stream.sendall(f"OPTIONS {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        assert read_one(stream)[0] == status


def test_an_http10_client_may_keep_its_connection(server):
    with connect(server) as stream:
        for _ in range(2):
            stream.sendall(request(version="1.0", headers="connection: keep-alive\r\n"))
            status, headers, _ = read_one(stream)
            assert (status, headers[b"connection"]) == (200, b"keep-alive")
        stream.sendall(request(version="1.0"))
        assert read_one(stream)[1][b"connection"] == b"close"
        assert stream.file.read() == b""


def test_an_http10_client_gets_no_100_continue(server):
    with connect(server) as stream:
        stream.sendall(request(version="1.0", headers="expect: 100-continue\r\n"))
        assert read_to_end(stream).startswith(b"HTTP/1.1 200 OK")


def test_100_continue_is_sent_in_order(server, engine):
    engine.hold = True
    with connect(server) as stream:
        expecting = request(headers="expect: 100-continue\r\n")
        stream.sendall(request() + expecting[: -len(BODY)])
        eventually(lambda: engine.requests, server)
        engine.hold = False
        server.loop.call_soon_threadsafe(engine.release)
        assert read_one(stream)[0] == 200
        assert (stream.file.readline(), stream.file.readline()) == (
            b"HTTP/1.1 100 Continue\r\n",
            b"\r\n",
        )
        stream.sendall(BODY)
        assert read_one(stream)[0] == 200


@pytest.mark.parametrize(
    "sent", [b"P", b"POST /v2/models/echo/infer HTTP/1.1\r\nhost:", META + b"GET /v2 HTT"]
)
def test_a_slow_head_times_out(start_server, sent):
    server = start_server(head_timeout_s=0.2)
    with connect_with(server, sent) as stream:
        assert b" 408 Request Timeout\r\n" in read_to_end(stream)


def test_a_head_byte_by_byte_times_out(start_server):
    server = start_server(head_timeout_s=0.3)
    with connect_with(server, b"GET /v2 HTTP/1.1\r\nname: ") as stream:
        stream.settimeout(0.02)
        received = b""
        while not received:
            stream.sendall(b"a")
            try:
                received = stream.recv(1000)
            except TimeoutError:
                continue
    assert b" 408 " in received


def test_a_silent_client_is_disconnected(start_server):
    with connect(start_server(head_timeout_s=0.1)) as stream:
        assert stream.recv(1) == b""


@pytest.mark.parametrize("path", [INFER, "/v2/repository/index"])
def test_a_stalled_body_times_out(start_server, path):
    server = start_server(body_timeout_s=0.2)
    with connect(server) as stream:
        stream.sendall(request(path=path)[:-5])
        assert b" 408 " in read_to_end(stream)
    eventually(lambda: not server.frontend._server.server_state.tasks, server)


def test_a_slow_body_with_progress_is_accepted(start_server):
    server = start_server(body_timeout_s=20, head_timeout_s=20, keep_alive_s=20)
    sent = request()
    head = sent[: -len(BODY)]
    with connect(server) as stream:
        stream.sendall(head)
        for at in range(0, len(BODY), 5):
            eventually(lambda: True, server)
            stream.sendall(BODY[at : at + 5])
        assert read_one(stream)[0] == 200


def test_the_time_of_the_model_does_not_count(start_server, engine):
    server = start_server(body_timeout_s=0.05, head_timeout_s=0.05, keep_alive_s=1)
    engine.hold = True
    # the second request is read after the response to the first
    with connect_with(server, request() + request()[:-3]) as slow:
        eventually(lambda: engine.requests, server)
        with connect(server) as other:
            assert other.recv(1) == b""  # time has passed
        engine.hold = False
        server.loop.call_soon_threadsafe(engine.release)
        assert read_one(slow)[0] == 200
        assert read_one(slow)[0] == 408


def test_a_client_that_does_not_read_is_disconnected(start_server, engine):
    server = start_server(body_timeout_s=0.1, keep_alive_s=0)
    large = Tensor.from_numpy("X", np.full(3_000_000, 1.5, np.float32))
    engine.answer = lambda request: [InferResponse([large], "echo", 1, request.id)]
    with connect_with(server, request()):
        eventually(lambda: engine.requests, server)
        eventually(lambda: not server.frontend._server.server_state.connections, server)


def test_a_connection_above_the_limit_gets_an_error(start_server, caplog):
    server = start_server(max_connections=2)
    with connect(server) as one, connect(server) as two:
        for stream in (one, two):
            stream.sendall(META)
            assert read_one(stream)[0] == 200
        with connect(server) as third:
            assert b"The server has too many connections" in read_to_end(third)
        one.sendall(META)
        assert read_one(one)[0] == 200
    eventually(lambda: not server.frontend._server.server_state.connections, server)
    assert server.infer(BODY).status == 200
    assert "too many connections" in caplog.text


def test_stop_ends_a_lingering_connection(start_server):
    server = start_server()
    with connect(server) as stream:
        stream.sendall(b"garbage\r\n\r\n")
        assert b" 400 " in read_to_end(stream)
        server.run(server.frontend.stop())
        with pytest.raises(OSError):  # noqa: PT012
            while True:
                stream.sendall(b"a")


def test_a_client_that_keeps_sending_after_a_refusal_is_disconnected(start_server):
    server = start_server()
    with connect(server) as stream:
        stream.sendall(b"garbage\r\n\r\n")
        with pytest.raises(OSError):  # noqa: PT012
            while True:
                stream.sendall(b"a" * 65536)
