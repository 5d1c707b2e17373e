from __future__ import annotations

import json
import re
import socket

import pytest

from tritonpy import PermissionDenied
from tritonpy.auth import ApiCategory, Restriction, Verb

from .conftest import LiveServer
from .raw_http import connect, read_one
from .recording_authorizer import RecordingAuthorizer

BODY = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1], "data": [1.5]}]}
RAW = json.dumps(BODY).encode()
KEY = {"X-API-Key": "k"}


@pytest.fixture
def authorizer():
    authorizer = RecordingAuthorizer()
    authorizer.key = "k"
    return authorizer


@pytest.fixture
def guarded(engine, authorizer):
    live = LiveServer(engine, authorizer)
    yield live
    live.close()


def sent(server, *parts):
    """Send raw bytes on one connection and return everything received."""
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


def test_an_authorized_inference_has_its_principal(guarded, engine, authorizer):
    assert guarded.infer(BODY, KEY).status == 200
    assert authorizer.checks == [(Verb.INFER, "echo")]
    assert engine.requests[0].principal is authorizer.principal


def test_an_unknown_principal_gets_401_with_a_challenge(guarded, engine):
    reply = guarded.infer(BODY)
    assert (reply.status, reply.error) == (401, "credentials are missing or unknown")
    assert reply.headers["www-authenticate"] == 'Bearer realm="tritonpy"'
    reply = guarded.call("GET", "/v2")
    assert (reply.status, reply.headers["www-authenticate"]) == (401, 'Bearer realm="tritonpy"')
    assert engine.requests == []


def test_refusals_do_not_reveal_which_models_exist(guarded, engine, authorizer):
    engine.answer = lambda request: pytest.fail("the model was called")
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


def test_a_principal_without_the_right_is_refused(guarded, authorizer):
    authorizer.refusal = PermissionDenied("no right to infer model 'echo'")
    reply = guarded.infer(BODY, KEY)
    assert (reply.status, reply.error) == (403, "no right to infer model 'echo'")
    assert "www-authenticate" not in reply.headers


def test_a_repeated_head_is_authorized_every_time(guarded, authorizer, engine):
    request = infer_head() + RAW
    with connect(guarded) as connection:
        for refusal, status in ((None, 200), (PermissionDenied("no"), 403), (None, 200)):
            authorizer.refusal = refusal
            connection.sendall(request)
            assert read_one(connection)[0] == status
    assert len(engine.requests) == 2


def test_the_body_of_a_refused_call_is_not_kept(guarded, authorizer, engine):
    chunk = b"x" * 65536
    answer = sent(guarded, infer_head(200 * len(chunk), key="wrong"), *[chunk] * 200)
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert guarded.infer(BODY, KEY).status == 200
    assert len(engine.requests) == 1


def test_an_oversized_body_of_an_unknown_principal_gets_401(engine, authorizer, start_server):
    server = start_server(authorizer, max_input_size=1000)
    large = {**BODY, "id": "x" * 2000}
    assert {
        server.infer(large, model=model).status for model in ("echo", "nowhere", "decoupled")
    } == {401}
    assert server.infer(large, KEY).status == 400


def test_pipelined_requests_are_authorized_separately(guarded, engine):
    answer = sent(
        guarded, infer_head(key="wrong") + RAW + infer_head() + RAW + infer_head(key="") + RAW
    )
    assert re.findall(rb"HTTP/1\.1 (\d+) ", answer) == [b"401", b"200", b"401"]
    assert len(engine.requests) == 1


def test_a_refused_head_does_not_affect_the_request_before_it(guarded, authorizer, engine):
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
def test_duplicate_credentials_are_refused(guarded, second):
    assert sent(guarded, infer_head(more=f"x-api-key: {second}\r\n") + RAW).startswith(
        b"HTTP/1.1 401 "
    )


def test_a_very_long_head_is_refused(guarded):
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
def test_the_authorized_model_is_the_requested_one(guarded, authorizer, engine, path, model):
    guarded.call("POST", f"/v2/models/{path}/infer", BODY, KEY)
    guarded.call("GET", f"/v2/models/{path}/config", None, KEY)
    guarded.call("POST", f"/v2/repository/models/{path}/load", b"{}", KEY)
    assert [name for _, name in authorizer.checks] == [model] * 3
    assert {request.model_name for request in engine.requests} <= {model}
    assert {load[0] for load in engine.loads} <= {model}


@pytest.mark.parametrize(
    "path", ["echo%2Fconfig", "echo%2finfer", "x%2F..%2Fecho/config", "echo%2Fversions%2F1/config"]
)
def test_an_escaped_slash_is_not_found(guarded, path):
    assert guarded.call("GET", f"/v2/models/{path}", None, KEY).status == 404


def test_health_is_public_and_may_be_guarded(guarded, authorizer):
    assert guarded.call("GET", "/v2/health/live").status == 200
    authorizer.public_endpoints = ()
    assert guarded.call("GET", "/v2/health/live").status == 401
    assert guarded.call("GET", "/v2/health/live", None, KEY).status == 200


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"])
@pytest.mark.parametrize(
    "path",
    ["/v2", "/v2/models/echo/infer", "/v2/repository/models/echo/load", "/schema", "/v2/logging"],
)
def test_every_method_is_authorized(guarded, engine, method, path):
    assert guarded.call(method, path, b"{}").status == 401
    assert engine.requests == engine.loads == []


def test_an_absolute_target_is_authorized_like_its_path(guarded):
    assert sent(
        guarded, b"GET http://other/v2/models/echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    ).startswith(b"HTTP/1.1 401 ")


def test_a_generate_call_has_its_principal(guarded, authorizer, engine):
    assert guarded.call("POST", "/v2/models/echo/generate", {"X": [1.5]}, {}).status == 401
    guarded.call("POST", "/v2/models/echo/generate", {"X": [1.5]}, KEY)
    assert authorizer.checks[-1] == (Verb.INFER, "echo")
    assert [request.principal for request in engine.requests] == [authorizer.principal]


def test_restricted_apis_answer_403_with_plain_text_as_their_type(start_server):
    server = start_server(
        restricted_apis=(Restriction((ApiCategory.INFERENCE, ApiCategory.HEALTH), "Key", "v"),)
    )
    for reply in (
        server.infer(BODY),
        server.call("GET", "/v2/health/live"),
        server.call("GET", "/v2/models/echo/infer"),
    ):
        assert (reply.status, reply.error) == (
            403,
            "This API is restricted, expecting header 'Key'",
        )
        assert reply.headers["content-type"] == "text/plain"
    assert server.infer(BODY, {"key": "v"}).status == 200
    assert server.call("GET", "/v2").status == 200


def test_headers_are_forwarded_with_the_names_that_were_sent(start_server, engine):
    server = start_server(header_forward_pattern="^x-")
    assert server.infer(BODY, {"X-Abc": "1", "y": "2"}).status == 200
    assert server.infer({**BODY, "parameters": {"p": 1}}, {"x-abc": "3"}).status == 200
    assert [request.parameters for request in engine.requests] == [
        {"X-Abc": "1"},
        {"p": 1, "x-abc": "3"},
    ]


def test_a_reserved_header_is_refused_in_json(start_server):
    reply = start_server(header_forward_pattern=".*").infer(BODY, {"timeout": "1"})
    assert (reply.status, reply.headers["content-type"]) == (400, "application/json")
    assert reply.error == "Header 'timeout' is reserved for Triton usage and cannot be forwarded."
