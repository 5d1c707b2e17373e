from __future__ import annotations

import json
import re
import socket

import pytest

from tritonpy import ApiCategory, PermissionDenied, Restriction, Verb

from .conftest import LiveServer
from .doorkeeper import Doorkeeper
from .wire import connect, read_one

BODY = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1], "data": [1.5]}]}
RAW = json.dumps(BODY).encode()
KEY = {"X-API-Key": "k"}


@pytest.fixture
def keeper():
    keeper = Doorkeeper()
    keeper.key = "k"
    return keeper


@pytest.fixture
def guarded(engine, keeper):
    live = LiveServer(engine, keeper)
    yield live
    live.close()


def sent(server, *parts):
    """Send raw bytes on one connection and return all that comes back."""
    with socket.create_connection(("127.0.0.1", server.port), 30) as connection:
        for part in parts:
            connection.sendall(part)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while more := connection.recv(65536):
            received += more
    return received


def infer_head(size=None, *, model="echo", key="k", more=""):
    return f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: h\r\nX-API-Key: {key}\r\nContent-Length: {len(RAW) if size is None else size}\r\n{more}\r\n".encode()


def test_an_inference_of_a_known_caller_has_its_principal(guarded, engine, keeper):
    assert guarded.infer(BODY, KEY).status == 200
    assert keeper.asked == [(Verb.INFER, "echo")]
    assert engine.requests[0].principal is keeper.principal


def test_an_unknown_caller_is_refused_and_told_how_to_ask(guarded, engine):
    reply = guarded.infer(BODY)
    assert (reply.status, reply.error) == (401, "credentials are missing or unknown")
    assert reply.headers["www-authenticate"] == 'Bearer realm="tritonpy"'
    reply = guarded.call("GET", "/v2")
    assert (reply.status, reply.headers["www-authenticate"]) == (401, 'Bearer realm="tritonpy"')
    assert engine.requests == []


def test_the_answer_does_not_tell_which_models_there_are(guarded, engine, keeper):
    engine.answer = lambda request: pytest.fail("it was asked")
    answers = {
        (reply.status, reply.body)
        for model in ("echo", "nowhere", "decoupled")
        for reply in (
            guarded.infer(BODY, model=model),
            guarded.infer(b"no JSON", model=model),
            guarded.call("GET", f"/v2/models/{model}"),
        )
    }
    assert len(answers) == 1


def test_a_caller_without_the_right_is_refused(guarded, keeper):
    keeper.refusal = PermissionDenied("no right to infer model 'echo'")
    reply = guarded.infer(BODY, KEY)
    assert (reply.status, reply.error) == (403, "no right to infer model 'echo'")
    assert "www-authenticate" not in reply.headers


def test_a_head_that_comes_again_is_judged_again(guarded, keeper, engine):
    request = infer_head() + RAW
    with connect(guarded) as connection:
        for refusal, status in ((None, 200), (PermissionDenied("no"), 403), (None, 200)):
            keeper.refusal = refusal
            connection.sendall(request)
            assert read_one(connection)[0] == status
    assert len(engine.requests) == 2


def test_the_body_of_a_refused_call_is_not_kept(guarded, keeper, engine):
    chunk = b"x" * 65536
    answer = sent(guarded, infer_head(200 * len(chunk), key="wrong"), *[chunk] * 200)
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert guarded.infer(BODY, KEY).status == 200
    assert len(engine.requests) == 1


def test_a_body_that_is_too_large_tells_an_unknown_caller_nothing_else(engine, keeper, start_server):
    server = start_server(keeper, max_input_size=1000)
    large = {**BODY, "id": "x" * 2000}
    assert {server.infer(large, model=model).status for model in ("echo", "nowhere", "decoupled")} == {401}
    assert server.infer(large, KEY).status == 400


def test_requests_behind_a_refused_one_are_judged_for_themselves(guarded, engine):
    answer = sent(guarded, infer_head(key="wrong") + RAW + infer_head() + RAW + infer_head(key="") + RAW)
    assert re.findall(rb"HTTP/1\.1 (\d+) ", answer) == [b"401", b"200", b"401"]
    assert len(engine.requests) == 1


def test_a_head_that_is_refused_changes_nothing_of_the_request_before_it(guarded, keeper, engine):
    engine.hold = True
    endless = b"GET /v2 HTTP/1.1\r\nX-API-Key: k\r\nX: " + b"x" * 200_000 + b"\r\n\r\n"
    with socket.create_connection(("127.0.0.1", guarded.port), 30) as connection:
        connection.sendall(infer_head() + RAW + infer_head(key="wrong") + RAW + endless)
        assert engine.arrived.wait(30)
        guarded.loop.call_soon_threadsafe(engine.release)
        received = b""
        while received.count(b"HTTP/1.1 ") < 2 and (more := connection.recv(65536)):
            received += more
    assert re.findall(rb"HTTP/1\.1 (\d+) ", received)[:2] == [b"200", b"401"]
    assert len(engine.requests) == 1


@pytest.mark.parametrize("second", ["k", "wrong"])
def test_a_key_that_is_given_twice_is_no_key(guarded, second):
    assert sent(guarded, infer_head(more=f"x-api-key: {second}\r\n") + RAW).startswith(b"HTTP/1.1 401 ")


def test_a_very_long_head_is_refused_and_the_server_goes_on(guarded):
    answer = sent(guarded, infer_head(key="k" * 1_000_000) + RAW)
    assert answer.startswith((b"HTTP/1.1 401 ", b"HTTP/1.1 431 "))
    assert guarded.infer(BODY, KEY).status == 200


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("echo", "echo"),
        ("%65cho", "echo"),
        ("%2e%2e", ".."),
        ("..", ".."),
        ("caf%C3%A9", "café"),
        ("cafe%CC%81", "cafe\u0301"),
        ("echo%00", "echo\0"),
        ("%2565cho", "%65cho"),
        ("echo%20", "echo "),
        ("%ff", "\ufffd"),
    ],
)
def test_the_model_that_is_judged_is_the_one_that_is_asked(guarded, keeper, engine, path, model):
    guarded.call("POST", f"/v2/models/{path}/infer", BODY, KEY)
    guarded.call("GET", f"/v2/models/{path}/config", None, KEY)
    guarded.call("POST", f"/v2/repository/models/{path}/load", b"{}", KEY)
    assert [name for _, name in keeper.asked] == [model] * 3
    assert {request.model_name for request in engine.requests} <= {model}
    assert {load[0] for load in engine.loads} <= {model}


@pytest.mark.parametrize(
    "path", ["echo%2Fconfig", "echo%2finfer", "x%2F..%2Fecho/config", "echo%2Fversions%2F1/config"]
)
def test_an_escaped_slash_leads_nowhere(guarded, path):
    assert guarded.call("GET", f"/v2/models/{path}", None, KEY).status == 404


def test_health_is_open_and_may_be_guarded(guarded, keeper):
    assert guarded.call("GET", "/v2/health/live").status == 200
    keeper.open_doors = ()
    assert guarded.call("GET", "/v2/health/live").status == 401
    assert guarded.call("GET", "/v2/health/live", None, KEY).status == 200


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"])
@pytest.mark.parametrize(
    "path", ["/v2", "/v2/models/echo/infer", "/v2/repository/models/echo/load", "/schema", "/v2/logging"]
)
def test_no_method_goes_by(guarded, engine, method, path):
    assert guarded.call(method, path, b"{}").status == 401
    assert engine.requests == engine.loads == []


def test_an_absolute_target_is_judged_like_its_path(guarded):
    assert sent(
        guarded, b"GET http://other/v2/models/echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    ).startswith(b"HTTP/1.1 401 ")


def test_a_generate_call_has_its_principal_too(guarded, keeper, engine):
    assert guarded.call("POST", "/v2/models/echo/generate", {"X": [1.5]}, {}).status == 401
    guarded.call("POST", "/v2/models/echo/generate", {"X": [1.5]}, KEY)
    assert keeper.asked[-1] == (Verb.INFER, "echo")
    assert [request.principal for request in engine.requests] == [keeper.principal]


def test_restricted_apis_answer_403_with_plain_text_as_their_type(start_server):
    server = start_server(restricted_apis=(Restriction((ApiCategory.INFERENCE, ApiCategory.HEALTH), "Key", "v"),))
    for reply in (
        server.infer(BODY),
        server.call("GET", "/v2/health/live"),
        server.call("GET", "/v2/models/echo/infer"),
    ):
        assert (reply.status, reply.error) == (403, "This API is restricted, expecting header 'Key'")
        assert reply.headers["content-type"] == "text/plain"
    assert server.infer(BODY, {"key": "v"}).status == 200
    assert server.call("GET", "/v2").status == 200


def test_headers_are_forwarded_with_the_names_that_were_sent(start_server, engine):
    server = start_server(header_forward_pattern="^x-")
    assert server.infer(BODY, {"X-Abc": "1", "y": "2"}).status == 200
    assert server.infer({**BODY, "parameters": {"p": 1}}, {"x-abc": "3"}).status == 200
    assert [request.parameters for request in engine.requests] == [{"X-Abc": "1"}, {"p": 1, "x-abc": "3"}]


def test_a_reserved_header_is_refused_in_json(start_server):
    reply = start_server(header_forward_pattern=".*").infer(BODY, {"timeout": "1"})
    assert (reply.status, reply.headers["content-type"]) == (400, "application/json")
    assert reply.error == "Header 'timeout' is reserved for Triton usage and cannot be forwarded."
