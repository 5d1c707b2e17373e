from __future__ import annotations

import logging

import pytest

from tritonpy import Unauthenticated
from tritonpy.auth import ApiCategory, Restriction

from .conftest import LiveServer
from .raw_http import connect, read_one
from .recording_authorizer import RecordingAuthorizer

LOG = "tritonpy.test.http"
BODY = {"id": "s3cret", "inputs": [{"name": "X", "datatype": "FP32", "shape": [1], "data": [1.5]}]}
HEADERS = {"Authorization": "Bearer s3cret"}


@pytest.fixture
def lines(caplog):
    """Return a function that waits for `count` lines and returns them with their models.

    A line may be logged after its response.
    """
    caplog.set_level(logging.DEBUG, LOG)

    def read(server, count):
        while len(caplog.records) < count:
            server.run(_next_iteration())
        return [(record.message, getattr(record, "model", None)) for record in caplog.records]

    return read


async def _next_iteration():
    """Run one iteration of the server's event loop."""


def test_an_inference_is_logged_with_model_and_status(server, lines):
    server.infer(BODY)
    server.call("POST", "/v2/models/echo/versions/1/infer?key=s3cret", BODY, HEADERS)
    server.infer(BODY, model="unknown")
    server.infer(b"no JSON", model="a%20%22b")
    assert lines(server, 4) == [
        ("POST /v2/models/echo/infer: 200", "echo"),
        ("POST /v2/models/echo/versions/1/infer: 200", "echo"),
        ("POST /v2/models/unknown/infer: 404", "unknown"),
        ("POST /v2/models/a%20%22b/infer: 404", 'a "b'),
    ]


def test_a_repeated_head_is_logged_every_time(server, lines):
    request = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\nno JSON"
    with connect(server) as connection:
        for _ in range(3):
            connection.sendall(request)
            assert read_one(connection)[0] == 500
    assert lines(server, 3) == [("POST /v2/models/echo/infer: 500", "echo")] * 3


@pytest.mark.parametrize(
    ("method", "path", "status", "model"),
    [
        ("GET", "/v2/health/ready", 200, None),
        ("GET", "/v2", 200, None),
        ("GET", "/v2/models/echo", 200, "echo"),
        ("GET", "/v2/models/unknown/config", 404, "unknown"),
        ("POST", "/v2/repository/models/echo/load", 200, "echo"),
        ("GET", "/v2/models/echo/infer", 405, "echo"),
        ("GET", "/nothing", 404, None),
        ("POST", "/v2/models/echo/generate", 200, "echo"),
        ("POST", "/v2/models/echo/generate_stream", 200, "echo"),
    ],
)
def test_every_other_request_is_logged(server, lines, method, path, status, model):
    body = {"X": 1, "id": "s3cret"} if "generate" in path else {} if method == "POST" else None
    server.call(method, f"{path}?key=s3cret", body, HEADERS)
    assert lines(server, 1) == [(f"{method} {path}: {status}", model)]


def test_a_stream_is_logged_at_its_end(server, engine, lines, caplog):
    seen = []
    engine.answer = lambda request: [seen.append(list(caplog.messages)), *engine.echo(request)][1:]
    server.call("POST", "/v2/models/echo/generate_stream", {"X": 1})
    assert lines(server, 1) == [("POST /v2/models/echo/generate_stream: 200", "echo")]
    assert seen == [[]]


def test_refused_requests_are_logged(engine, lines):
    server = LiveServer(engine, RecordingAuthorizer(Unauthenticated("who")))
    try:
        server.infer(BODY, HEADERS)
        server.call("GET", "/v2/models/echo", None, HEADERS)
        assert lines(server, 2) == [
            ("POST /v2/models/echo/infer: 401", "echo"),
            ("GET /v2/models/echo: 401", "echo"),
        ]
    finally:
        server.close()


def test_the_level_may_change_at_any_time(server, caplog):
    log = logging.getLogger(LOG)
    for level, count in ((logging.INFO, 0), (logging.DEBUG, 2), (logging.INFO, 2)):
        caplog.set_level(level, LOG)
        assert log.isEnabledFor(logging.DEBUG) is (level == logging.DEBUG)
        server.infer(BODY)
        server.call("GET", "/v2")
        while len(caplog.records) < count:
            server.run(_next_iteration())
    server.run(_next_iteration())
    assert caplog.messages == ["POST /v2/models/echo/infer: 200", "GET /v2: 200"]


def test_a_refusal_of_a_restricted_api_is_counted(engine, caplog):
    given = Restriction((ApiCategory.METADATA, ApiCategory.INFERENCE), "admin-key", "s3cret")
    server = LiveServer(engine, restricted_apis=(given,))
    try:
        server.infer(BODY, {"admin-key": "wr0ng"})
        server.call("GET", "/v2", None, {"admin-key": "wr0ng"})
        server.call("GET", "/v2", None, {"admin-key": "s3cret"})
        server.call("GET", "/v2/health/ready")
    finally:
        server.close()
    (family,) = server.frontend.context.metrics._registry.snapshot()
    assert {one.labels["api"]: one.value for one in family.metrics if one.value} == {
        "metadata": 1,
        "inference": 1,
    }
    assert [line.partition(" to the ")[0] for line in caplog.messages] == ["refused: http call"] * 2
