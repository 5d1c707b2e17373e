from __future__ import annotations

import logging

import pytest

from tritonpy import ApiCategory, Restriction, Unauthenticated

from .conftest import LiveServer
from .doorkeeper import Doorkeeper
from .wire import connect, read_one

LOG = "tritonpy.test.http"
BODY = {"id": "s3cret", "inputs": [{"name": "X", "datatype": "FP32", "shape": [1], "data": [1.5]}]}
HEADERS = {"Authorization": "Bearer s3cret"}


@pytest.fixture
def lines(caplog):
    """Return a function that gives each line with its model, as soon as there are so many; lines may come after their answers."""
    caplog.set_level(logging.DEBUG, LOG)

    def read(server, count):
        while len(caplog.records) < count:
            server.run(_a_turn())
        return [(record.message, getattr(record, "model", None)) for record in caplog.records]

    return read


async def _a_turn():
    """Let the server's loop do what it has to do."""


def test_an_inference_is_told_of_with_its_model_and_status(server, lines):
    server.infer(BODY)
    server.call("POST", "/v2/models/echo/versions/1/infer?key=s3cret", BODY, HEADERS)
    server.infer(BODY, model="nobody")
    server.infer(b"no JSON", model="a%20%22b")
    assert lines(server, 4) == [
        ("POST /v2/models/echo/infer: 200", "echo"),
        ("POST /v2/models/echo/versions/1/infer: 200", "echo"),
        ("POST /v2/models/nobody/infer: 404", "nobody"),
        ("POST /v2/models/a%20%22b/infer: 404", 'a "b'),
    ]


def test_a_head_that_comes_again_is_told_of_again(server, lines):
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
        ("GET", "/v2/models/nobody/config", 404, "nobody"),
        ("POST", "/v2/repository/models/echo/load", 200, "echo"),
        ("GET", "/v2/models/echo/infer", 405, "echo"),
        ("GET", "/nothing", 404, None),
        ("POST", "/v2/models/echo/generate", 200, "echo"),
        ("POST", "/v2/models/echo/generate_stream", 200, "echo"),
    ],
)
def test_every_other_request_is_too(server, lines, method, path, status, model):
    body = {"X": 1, "id": "s3cret"} if "generate" in path else {} if method == "POST" else None
    server.call(method, f"{path}?key=s3cret", body, HEADERS)
    assert lines(server, 1) == [(f"{method} {path}: {status}", model)]


def test_a_stream_is_told_of_when_it_has_ended(server, engine, lines, caplog):
    seen = []
    engine.answer = lambda request: [seen.append(list(caplog.messages)), *engine.echo(request)][1:]
    server.call("POST", "/v2/models/echo/generate_stream", {"X": 1})
    assert lines(server, 1) == [("POST /v2/models/echo/generate_stream: 200", "echo")]
    assert seen == [[]]


def test_refused_requests_are_told_of(engine, lines):
    server = LiveServer(engine, Doorkeeper(Unauthenticated("who")))
    try:
        server.infer(BODY, HEADERS)
        server.call("GET", "/v2/models/echo", None, HEADERS)
        assert lines(server, 2) == [("POST /v2/models/echo/infer: 401", "echo"), ("GET /v2/models/echo: 401", "echo")]
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
            server.run(_a_turn())
    server.run(_a_turn())
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
    assert {one.labels["api"]: one.value for one in family.metrics if one.value} == {"metadata": 1, "inference": 1}
    assert [line.partition(" of the ")[0] for line in caplog.messages] == ["refused: a call over http"] * 2
