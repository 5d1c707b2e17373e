"""What is no HTTP, too much of it, or too slow."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tritonpy import InferResponse, Tensor

from .wire import (
    BODY,
    INFER,
    META,
    chunked,
    connect,
    connect_with,
    eventually,
    exchange,
    read_one,
    read_to_end,
    request,
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
def test_what_could_be_read_in_two_ways_is_refused(server, engine, sent):
    assert exchange(server, sent) == (400, INVALID)
    assert engine.requests == []


@pytest.mark.parametrize(
    ("sent", "status", "text"),
    [
        (request(headers="host: y\r\n"), 400, "The request names more than one host"),
        (request(chunked(BODY), "transfer-encoding: chunked\r\n", version="1.0", length=False), 400, "Transfer-Encoding needs HTTP/1.1"),
        (request(chunked(BODY), "transfer-encoding: gzip, chunked\r\n", length=False), 501, "Transfer-Encoding may be 'chunked' alone"),
        (request(BODY, "transfer-encoding: identity\r\n", length=False), 501, "Transfer-Encoding may be 'chunked' alone"),
        (b"GET /v2 HTTP/2.0\r\nhost: x\r\n\r\n", 505, "HTTP/1.1 and HTTP/1.0 are served"),
        (b"GET /v2\r\n\r\n", 505, "HTTP/1.1 and HTTP/1.0 are served"),
        (b"BREW /v2 HTTP/1.1\r\nhost: x\r\n\r\n", 405, "Method Not Allowed"),
        (b"CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n", 404, "Not Found"),
    ],
)  # fmt: skip
def test_what_is_not_served_is_refused_with_its_reason(server, engine, sent, status, text):
    assert exchange(server, sent) == (status, text)
    assert engine.requests == []


def test_every_refusal_is_logged_and_the_server_goes_on(server, caplog):
    exchange(server, b"garbage\r\n\r\n")
    assert "refused a request from 127.0.0.1:" in caplog.text
    assert INVALID in caplog.text
    assert server.infer(BODY).status == 200


@pytest.mark.parametrize("end", [b"\r\n\r\n", b""])
def test_a_head_that_is_too_large_is_refused(start_server, end):
    server = start_server(max_head_size=1000)
    sent = b"GET /v2 HTTP/1.1\r\nhost: x\r\nlong: " + b"a" * 1000
    assert exchange(server, sent + end) == (431, "The head of the request is too large")


def test_a_path_counts_as_part_of_the_head(start_server):
    server = start_server(max_head_size=1000)
    assert exchange(server, b"GET /v2?" + b"a" * 1000 + b" HTTP/1.1\r\nhost: x\r\n\r\n")[0] == 431


def test_a_head_that_comes_in_pieces_is_refused_when_it_has_become_too_large(start_server):
    server = start_server(max_head_size=100_000)
    with connect(server) as stream:
        stream.sendall(b"GET /v2 HTTP/1.1\r\nhost: x\r\nlong: ")
        for _ in range(120):
            stream.sendall(b"a" * 1000)
        assert b" 431 " in read_to_end(stream)


def test_too_many_headers_are_refused_before_and_behind_the_body(start_server):
    server = start_server(max_headers=20)
    many = "".join(f"name-{number}: value\r\n" for number in range(30))
    few = "".join(f"name-{number}: value\r\n" for number in range(15))
    error = (431, "The request has too many headers")
    assert exchange(server, request(headers=many)) == error
    head = f"POST {INFER} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n{few}\r\n".encode()
    body = b"%x\r\n%s\r\n0\r\n" % (len(BODY), BODY)
    assert exchange(server, head + body + many.encode() + b"\r\n") == error
    with connect(server) as stream:
        stream.sendall(head + body + few.encode() + b"\r\n")
        assert read_one(stream)[0] == 200


def test_headers_behind_the_body_are_no_headers(server, engine):
    sent = request(
        b"%x\r\n%s\r\n0\r\ncontent-encoding: br\r\n\r\n" % (len(BODY), BODY),
        "transfer-encoding: chunked\r\n",
        length=False,
    )
    with connect(server) as stream:
        stream.sendall(sent)
        assert read_one(stream)[0] == 200


def test_a_refusal_waits_for_the_answers_before_it(server, engine):
    engine.hold = True
    with connect(server) as stream:
        stream.sendall(request() + request() + b"garbage\r\n\r\n")
        eventually(lambda: engine.requests, server)
        engine.hold = False
        server.loop.call_soon_threadsafe(engine.release)
        assert [read_one(stream)[0] for _ in range(3)] == [200, 200, 400]
        assert stream.file.read() == b""


def test_a_request_that_breaks_in_its_body_behind_another_is_refused_in_its_turn(server, engine):
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
def test_a_request_that_breaks_in_its_body_is_refused(server, path):
    with connect(server) as stream:
        stream.sendall(request(b"2\r\n{}\r\nzz\r\n", "transfer-encoding: chunked\r\n", path=path, length=False))
        assert read_to_end(stream).startswith(b"HTTP/1.1 400 ")
    eventually(lambda: not server.frontend._server.server_state.tasks, server)
    assert server.infer(BODY).status == 200


def test_another_protocol_is_not_taken_up_and_the_request_is_served_with_its_body(server, engine):
    with connect(server) as stream:
        stream.sendall(
            request(headers=H2C) + META + request(path="/v2/repository/index", body=b'{"ready":true}', headers=H2C)
        )
        assert json.loads(read_one(stream)[2])["model_name"] == "echo"
        assert json.loads(read_one(stream)[2])["name"] == "triton"
        assert len(json.loads(read_one(stream)[2])) == 1
        sent = request(headers=H2C)
        stream.sendall(sent[:-7])
        stream.sendall(sent[-7:])
        assert json.loads(read_one(stream)[2])["model_name"] == "echo"
    assert len(engine.requests) == 2


def test_the_body_of_a_request_for_another_protocol_is_no_request(server, engine):
    hidden = request(b"x" * 10, path="/v2/repository/models/echo/unload")
    with connect(server) as stream:
        stream.sendall(request(hidden, H2C))
        assert read_one(stream)[0] == 500  # it is no JSON
    assert engine.loads == []


def test_a_request_target_may_name_the_server(server):
    with connect(server) as stream:
        stream.sendall(request(path=f"http://localhost:1{INFER}") + META.replace(b"/v2", b"HTTP://x/v2"))
        assert json.loads(read_one(stream)[2])["model_name"] == "echo"
        assert json.loads(read_one(stream)[2])["name"] == "triton"


@pytest.mark.parametrize(("path", "status"), [("*", 404), ("/v2", 405), ("/nowhere", 404), (INFER, 405)])
def test_options_are_no_method_of_any_path(server, path, status):
    with connect(server) as stream:
        stream.sendall(f"OPTIONS {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        assert read_one(stream)[0] == status


def test_an_old_client_keeps_its_connection_where_it_asks_to(server):
    with connect(server) as stream:
        for _ in range(2):
            stream.sendall(request(version="1.0", headers="connection: keep-alive\r\n"))
            status, headers, _ = read_one(stream)
            assert (status, headers[b"connection"]) == (200, b"keep-alive")
        stream.sendall(request(version="1.0"))
        assert read_one(stream)[1][b"connection"] == b"close"
        assert stream.file.read() == b""


def test_an_old_client_is_not_told_to_continue(server):
    with connect(server) as stream:
        stream.sendall(request(version="1.0", headers="expect: 100-continue\r\n"))
        assert read_to_end(stream).startswith(b"HTTP/1.1 200 OK")


def test_a_client_that_asks_to_continue_waits_for_the_answers_before_it(server, engine):
    engine.hold = True
    with connect(server) as stream:
        asking = request(headers="expect: 100-continue\r\n")
        stream.sendall(request() + asking[: -len(BODY)])
        eventually(lambda: engine.requests, server)
        engine.hold = False
        server.loop.call_soon_threadsafe(engine.release)
        assert read_one(stream)[0] == 200
        assert (stream.file.readline(), stream.file.readline()) == (b"HTTP/1.1 100 Continue\r\n", b"\r\n")
        stream.sendall(BODY)
        assert read_one(stream)[0] == 200


@pytest.mark.parametrize("sent", [b"P", b"POST /v2/models/echo/infer HTTP/1.1\r\nhost:", META + b"GET /v2 HTT"])
def test_a_head_that_comes_too_slowly_ends_the_connection(start_server, sent):
    server = start_server(head_timeout_s=0.2)
    with connect_with(server, sent) as stream:
        assert b" 408 Request Timeout\r\n" in read_to_end(stream)


def test_a_head_that_comes_byte_by_byte_gets_no_more_time(start_server):
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


def test_a_client_that_says_nothing_is_let_go(start_server):
    with connect(start_server(head_timeout_s=0.1)) as stream:
        assert stream.recv(1) == b""


@pytest.mark.parametrize("path", [INFER, "/v2/repository/index"])
def test_a_body_that_stands_still_ends_the_connection(start_server, path):
    server = start_server(body_timeout_s=0.2)
    with connect(server) as stream:
        stream.sendall(request(path=path)[:-5])
        assert b" 408 " in read_to_end(stream)
    eventually(lambda: not server.frontend._server.server_state.tasks, server)


def test_a_body_that_comes_on_has_time(start_server):
    server = start_server(body_timeout_s=20, head_timeout_s=20, keep_alive_s=20)
    sent = request()
    head = sent[: -len(BODY)]
    with connect(server) as stream:
        stream.sendall(head)
        for at in range(0, len(BODY), 5):
            eventually(lambda: True, server)
            stream.sendall(BODY[at : at + 5])
        assert read_one(stream)[0] == 200


def test_a_request_that_waits_for_the_model_is_not_too_slow(start_server, engine):
    server = start_server(body_timeout_s=0.05, head_timeout_s=0.05, keep_alive_s=1)
    engine.hold = True
    # the second one is not read before the first is answered
    with connect_with(server, request() + request()[:-3]) as slow:
        eventually(lambda: engine.requests, server)
        with connect(server) as other:
            assert other.recv(1) == b""  # time has passed
        engine.hold = False
        server.loop.call_soon_threadsafe(engine.release)
        assert read_one(slow)[0] == 200
        assert read_one(slow)[0] == 408


def test_a_client_that_does_not_read_its_answer_is_let_go(start_server, engine):
    server = start_server(body_timeout_s=0.1, keep_alive_s=0)
    large = Tensor.from_numpy("X", np.full(3_000_000, 1.5, np.float32))
    engine.answer = lambda asked: [InferResponse([large], "echo", 1, asked.id)]
    with connect_with(server, request()):
        eventually(lambda: engine.requests, server)
        eventually(lambda: not server.frontend._server.server_state.connections, server)


def test_one_connection_too_many_is_told_so(start_server, caplog):
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


def test_stopping_ends_a_connection_that_is_saying_farewell(start_server):
    server = start_server()
    with connect(server) as stream:
        stream.sendall(b"garbage\r\n\r\n")
        assert b" 400 " in read_to_end(stream)
        server.run(server.frontend.stop())
        with pytest.raises(OSError):  # noqa: PT012
            while True:
                stream.sendall(b"a")


def test_a_client_that_goes_on_sending_after_its_refusal_is_cut_off(start_server):
    server = start_server()
    with connect(server) as stream:
        stream.sendall(b"garbage\r\n\r\n")
        with pytest.raises(OSError):  # noqa: PT012
            while True:
                stream.sendall(b"a" * 65536)
