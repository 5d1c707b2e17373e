from __future__ import annotations

import json
import threading

import pytest

from tritonpy import InferResponse, Internal, NotFound, ParameterValue, Tensor, Unavailable
from tritonpy.metrics import FamilySnapshot, MetricKind, MetricSnapshot
from tritonpy.tracing import Tracer

from ..raw_http import eventually

GENERATE, STREAM = "/v2/models/echo/generate", "/v2/models/echo/generate_stream"
EVENTS = "text/event-stream; charset=utf-8"
NOT_ONE = "generate expects model to produce exactly 1 response, use generate stream for model that generates various number of responses"
SECONDS = 30


def events(reply):
    parts = reply.body.split(b"\n\n")
    assert parts.pop() == b""
    assert all(part.startswith(b"data: ") for part in parts)
    return [json.loads(part[6:]) for part in parts]


def head(path, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode()


def test_one_response_is_one_chunked_document(server):
    reply = server.call("POST", GENERATE, {"X": [1, 2], "id": "7"})
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["transfer-encoding"] == "chunked"
    assert reply.json == {"id": "7", "model_name": "echo", "model_version": "1", "X": [1.0, 2.0]}


def test_one_response_is_one_event(server):
    reply = server.call("POST", STREAM, {"X": 5})
    assert (reply.status, reply.headers["content-type"]) == (200, EVENTS)
    assert events(reply) == [{"model_name": "echo", "model_version": "1", "X": 5.0}]


def test_parameters_and_version_reach_the_model(server, engine):
    assert (
        server.call(
            "POST", "/v2/models/echo/versions/1/generate", {"X": 1, "parameters": {"a": "b"}}
        ).status
        == 200
    )
    request = engine.requests[0]
    given: dict[str, ParameterValue] = dict(request.parameters)
    assert (request.model_version, given, request.accepts_decoupled) == (1, {"a": "b"}, True)
    assert request.received_ns > 0


def test_every_response_is_an_event(server, engine, decoupled_responses):
    engine.answer = decoupled_responses(1, 2, 3)
    reply = server.call("POST", STREAM, {"X": 1})
    assert [event["X"] for event in events(reply)] == [1.0, 2.0, 3.0]
    assert reply.status == 200


def test_no_response_is_no_event(server, engine, decoupled_responses):
    engine.answer = decoupled_responses()
    reply = server.call("POST", STREAM, {"X": 1})
    assert (reply.status, reply.headers["content-type"], reply.body) == (200, EVENTS, b"")


@pytest.mark.parametrize("values", [(), (1, 2), (1, 2, 3)])
def test_generate_requires_exactly_one_response(server, engine, decoupled_responses, values):
    engine.answer = decoupled_responses(*values)
    reply = server.call("POST", GENERATE, {"X": 1})
    assert (reply.status, reply.error, reply.headers["content-type"]) == (
        200,
        NOT_ONE,
        "application/json",
    )


def test_generate_accepts_one_response_and_an_empty_final_one(server, engine, decoupled_responses):
    engine.answer = decoupled_responses(4)
    assert server.call("POST", GENERATE, {"X": 1}).json["X"] == 4.0


def test_an_error_as_first_response_sets_the_status(server, engine, decoupled_responses):
    engine.answer = decoupled_responses(NotFound("not here"), 2)
    reply = server.call("POST", STREAM, {"X": 1})
    assert (reply.status, reply.headers["content-type"]) == (400, EVENTS)
    assert [event.get("error", event.get("X")) for event in events(reply)] == ["not here", 2.0]


def test_a_later_error_is_an_event(server, engine, decoupled_responses):
    engine.answer = decoupled_responses(1, Unavailable("no more"), 3)
    reply = server.call("POST", STREAM, {"X": 1})
    assert reply.status == 200
    assert [event.get("error", event.get("X")) for event in events(reply)] == [1.0, "no more", 3.0]


def test_an_error_as_only_response_is_the_document(server, engine, decoupled_responses):
    engine.answer = decoupled_responses(Unavailable("no more"))
    reply = server.call("POST", GENERATE, {"X": 1})
    assert (reply.status, reply.error, reply.headers["transfer-encoding"]) == (
        400,
        "no more",
        "chunked",
    )


def test_an_output_without_json_representation_is_an_error(server, engine):
    half = Tensor.from_buffer("H", "FP16", (1,), b"\0\0")
    engine.answer = lambda request: [InferResponse([half], "echo", 1, request.id)]
    reply = server.call("POST", STREAM, {"X": 1})
    assert reply.status == 400
    assert events(reply)[0]["error"].startswith("sending FP16 data via JSON is not supported")


def test_an_encoding_failure_is_an_internal_error(server, engine, caplog):
    engine.answer = lambda request: [InferResponse((), "echo", 1, "\ud800")]
    reply = server.call("POST", GENERATE, {"X": 1})
    assert reply.status == 400
    assert reply.error.split("error id ")[1].split()[0] in caplog.text


@pytest.mark.parametrize("path", [GENERATE, STREAM])
@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 500, "The document is empty. at 0"),
        (b"[1]", 500, "attempt to get members for non-object"),
        (b'{"X":"a"}', 500, "attempt to access JSON non-number as double"),
        (b'{"X":1,"y":null}', 400, "parameter 'y' has invalid type"),
    ],
)
def test_request_errors_are_plain_json(server, engine, path, body, status, words):
    reply = server.call("POST", path, body)
    assert (reply.status, reply.headers["content-type"]) == (status, "application/json")
    assert reply.headers["content-length"] == str(len(reply.body))
    assert words in reply.error
    assert engine.requests == []


@pytest.mark.parametrize("path", [GENERATE, STREAM])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_other_methods_are_not_allowed(server, path, method):
    reply = server.call(method, path)
    assert (reply.status, reply.error) == (405, "Method Not Allowed")


def test_errors_have_a_fixed_precedence(server):
    packed = {"Content-Encoding": "gzip"}
    assert "unknown model" in server.call("POST", "/v2/models/nope/generate", b"{", packed).error
    reply = server.call("POST", GENERATE, b"{", packed)
    assert (reply.status, reply.error) == (
        400,
        "Unsupported content-encoding, only 'identity' is supported.",
    )
    assert server.call("POST", GENERATE, {"X": 1}, {"Content-Encoding": "identity"}).status == 200


def test_a_version_above_64_bits_is_refused(server):
    reply = server.call("POST", "/v2/models/echo/versions/99999999999999999999/generate", {"X": 1})
    assert reply.error.startswith("failed to get model version from specified version string")


@pytest.mark.parametrize("chunked", [False, True])
def test_an_oversized_body_is_refused_and_the_connection_stays_open(start_server, chunked):
    server = start_server(max_input_size=1000)
    connection = server.connect()
    large = json.dumps({"X": 1, "pad": "x" * 5000}).encode()
    connection.request("POST", GENERATE, iter([large[:3000], large[3000:]]) if chunked else large)
    reply = connection.getresponse()
    assert reply.status == 400
    assert json.loads(reply.read())["error"].startswith(
        f"request JSON size of {len(large)} bytes exceeds"
    )
    connection.request("POST", GENERATE, b'{"X":1}')
    assert connection.getresponse().status == 200
    connection.close()


def test_a_refusal_of_the_model_is_plain_json(server, engine):
    engine.error = Internal("broken")
    reply = server.call("POST", STREAM, {"X": 1})
    assert (reply.status, reply.error, reply.headers["content-type"]) == (
        500,
        "broken",
        "application/json",
    )


def test_an_exception_is_an_internal_error(server, engine, caplog):
    engine.error = RuntimeError("secret")
    reply = server.call("POST", GENERATE, {"X": 1})
    assert reply.status == 500
    assert "secret" not in reply.error
    assert reply.error.split("error id ")[1].split()[0] in caplog.text


def test_load_metrics_are_sent_on_request(server, engine, monkeypatch):
    blocks = {"used": 1.0, "max": 4.0, "tokens_per": 64.0}
    metrics = [
        MetricSnapshot({"kv_cache_block_type": kind}, value) for kind, value in blocks.items()
    ]
    family = FamilySnapshot("nv_trt_llm_kv_cache_block_metrics", "", MetricKind.GAUGE, metrics)
    monkeypatch.setattr(engine, "custom_metrics", lambda: [family])
    for path in (GENERATE, STREAM):
        values = {
            format_: server.call(
                "POST", path, {"X": 1}, {"Endpoint-Load-Metrics-Format": format_}
            ).headers
            for format_ in ("text", "json", "other")
        }
        expected = (
            "TEXT named_metrics.kv_cache_utilization=0.250000, named_metrics.max_token_capacity=256"
        )
        assert values["text"]["endpoint-load-metrics"] == expected
        assert values["json"]["endpoint-load-metrics"].startswith('JSON {"named_metrics":{')
        assert "endpoint-load-metrics" not in values["other"]
        assert "endpoint-load-metrics" not in server.call("POST", path, {"X": 1}).headers


class RecordedTrace:
    """A trace that records its time stamps."""

    def __init__(self) -> None:
        self.values: list[str] = []

    def stamp(self, name: str, ns: int = 0) -> None:
        self.values.append(name)

    def end(self) -> None:
        self.values.append("end")


class RecordingTracer(Tracer):
    """Traces every request."""

    active = True

    def __init__(self) -> None:
        self.trace = RecordedTrace()

    def sample(self, model_name, headers):
        return self.trace


@pytest.fixture
def recorded_trace(server):
    server.frontend._service.calls.tracer = RecordingTracer()
    return server.frontend._service.calls.tracer.trace


@pytest.mark.parametrize("path", [GENERATE, STREAM])
def test_a_trace_has_receive_and_send_times(server, recorded_trace, path):
    assert server.call("POST", path, {"X": 1}).status == 200
    eventually(lambda: "end" in recorded_trace.values, server)  # the client has its answer before
    assert recorded_trace.values == [
        "HTTP_RECV_START",
        "HTTP_RECV_END",
        "HTTP_SEND_START",
        "HTTP_SEND_END",
        "end",
    ]


def test_the_trace_of_a_refused_call_ends(server, engine, recorded_trace):
    engine.error = Internal("broken")
    assert server.call("POST", STREAM, {"X": 1}).status == 500
    eventually(lambda: "end" in recorded_trace.values, server)
    assert recorded_trace.values == ["HTTP_RECV_START", "HTTP_RECV_END", "end"]


def test_an_exception_before_inference_is_an_internal_error(server, engine, monkeypatch, caplog):
    monkeypatch.setattr(engine, "model_metadata", lambda *_: 1 / 0)
    reply = server.call("POST", GENERATE, {"X": 1})
    assert reply.status == 500
    assert reply.error.split("error id ")[1].split()[0] in caplog.text


def test_the_first_response_is_sent_immediately(server, engine, decoupled_responses):
    engine.hold = True
    connection = server.connect()
    connection.request("POST", STREAM, b'{"X":1}')
    assert engine.arrived.wait(SECONDS)
    (request,) = engine.held
    first, last = decoupled_responses(1)(request)
    request.respond(first)
    reply = connection.getresponse()
    assert json.loads(reply.readline()[6:])["X"] == 1.0
    request.respond(last)
    assert reply.read() == b"\n"
    connection.close()


def test_a_disconnect_cancels_the_request_and_releases_the_producer(
    server, engine, decoupled_responses
):
    engine.hold = True
    cancelled, ready = threading.Event(), threading.Event()
    connection = server.connect()
    connection.request("POST", STREAM, b'{"X":1}')
    assert engine.arrived.wait(SECONDS)
    (request,) = engine.held
    request.owner = RecordingOwner(cancelled)
    connection.close()
    assert cancelled.wait(SECONDS)
    assert request.cancelled
    for _ in range(1000):
        request.sink.put(request, decoupled_responses(1)(request)[0])
    request.sink.when_ready(request, ready.set)
    assert ready.wait(SECONDS)
    assert server.call("POST", GENERATE.replace("echo", "nope"), {}).status == 404


class RecordingOwner:
    """A request owner that records the cancellation."""

    def __init__(self, cancelled: threading.Event) -> None:
        self._cancelled = cancelled

    def cancel(self, request) -> None:
        self._cancelled.set()


def test_a_disconnect_during_the_body_starts_no_request(server, engine, raw_connection):
    connection = raw_connection(server.port)
    connection.sendall(head(STREAM, b"x" * 50) + b'{"X":1')
    connection.close()
    assert server.call("POST", GENERATE, {"X": 2}).status == 200
    assert len(engine.requests) == 1


def test_a_request_that_waits_for_100_continue_gets_it(server, raw_connection):
    connection = raw_connection(server.port)
    connection.sendall(head(GENERATE, b'{"X":1}', "Expect: 100-continue"))
    assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.sendall(b'{"X":1}')
    assert connection.recv(1000).startswith(b"HTTP/1.1 200 OK\r\n")


def test_responses_on_one_connection_are_in_order(server, raw_connection):
    connection = raw_connection(server.port)
    body = b'{"X":%d}'
    connection.sendall(
        b"".join(
            head(path, body % n) + body % n for n, path in enumerate((STREAM, GENERATE, STREAM))
        )
        + head("/v2/models/nope/generate", b"{}", "Connection: close")
        + b"{}"
    )
    received = b""
    while data := connection.recv(65536):
        received += data
    assert [received.find(b'"X":%d.0' % n) for n in range(3)] == sorted(
        received.find(b'"X":%d.0' % n) for n in range(3)
    )
    assert received.count(b"HTTP/1.1 200 OK") == 3
    assert received.count(b"HTTP/1.1 404") == 1


def test_draining_finishes_a_live_stream_and_refuses_new_calls(server, engine, decoupled_responses):
    engine.hold = True
    live, idle = server.connect(), server.connect()
    idle.request("GET", "/v2/health/live")
    idle.getresponse().read()
    live.request("POST", STREAM, b'{"X":1}')
    assert engine.arrived.wait(SECONDS)
    drained = server.begin_draining()
    idle.request("POST", GENERATE, b'{"X":1}')
    refused = idle.getresponse()
    assert refused.status == 503
    refused.read()
    assert not drained.is_set()
    engine.answer = decoupled_responses(1, 2)
    server.loop.call_soon_threadsafe(engine.release)
    assert live.getresponse().read().count(b"data: ") == 2
    assert drained.wait(SECONDS)
    live.close()
    idle.close()


def test_stop_ends_a_stream_and_cancels_its_request(engine, start_server):
    engine.hold = True
    server = start_server()
    live = server.connect()
    live.request("POST", STREAM, b'{"X":1}')
    assert engine.arrived.wait(SECONDS)
    server.run(server.frontend.stop())
    with pytest.raises((ConnectionError, OSError)):
        live.getresponse()
    assert engine.requests[0].cancelled
    live.close()
