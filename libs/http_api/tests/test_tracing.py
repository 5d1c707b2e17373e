from __future__ import annotations

import threading

import pytest

from tritonpy import InferResponse, Internal
from tritonpy.tracing import TraceFamily, Tracer
from tritonpy_types import TraceLevel

from .conftest import FakeEngine, LiveServer

BODY = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}
PATH = "/v2/models/echo/infer"
WHOLE = ["HTTP_RECV_START", "HTTP_RECV_END", "HTTP_SEND_START", "HTTP_SEND_END"]


class RecordingTracer(Tracer):
    """Traces every request, or none, and records the ended traces."""

    headers = ("traceparent", "tracestate")

    def __init__(self, chooses=True):
        self.active = True
        self.chooses = chooses
        self.sampled = []
        self.ended = []
        self.over = threading.Semaphore(0)

    def sample(self, model_name, headers):
        self.sampled.append((model_name, dict(headers)))
        if not self.chooses:
            return None
        return TraceFamily(TraceLevel.TIMESTAMPS, None, None, lambda _: None, self._ended).trace()

    def _ended(self, family):
        self.ended.append([stamp.name for stamp in family.traces[0].stamps()])
        self.over.release()

    def wait(self):
        assert self.over.acquire(timeout=20)
        return self.ended[-1]


@pytest.fixture
def tracer():
    return RecordingTracer()


@pytest.fixture
def engine():
    return FakeEngine()


@pytest.fixture
def server(engine, tracer):
    live = LiveServer(engine, tracer=tracer)
    yield live
    live.close()


def test_a_traced_call_has_all_time_stamps(server, tracer):
    assert server.call("POST", PATH, BODY).status == 200
    assert tracer.wait() == WHOLE


def test_time_stamps_are_in_order(server, tracer):
    families = []
    tracer._ended = lambda family: (families.append(family), tracer.over.release())
    server.call("POST", PATH, BODY)
    assert tracer.over.acquire(timeout=20)
    times = [stamp.ns for stamp in families[0].traces[0].stamps()]
    assert times == sorted(times)


def test_the_tracer_receives_only_its_headers(server, tracer):
    server.call("POST", PATH, BODY, {"Traceparent": "00-ab", "Authorization": "secret"})
    assert tracer.sampled == [("echo", {"traceparent": "00-ab"})]


def test_requests_with_a_cached_head_are_traced(server, tracer):
    connection = server.connect()
    for _ in range(3):
        connection.request(
            "POST", PATH, b'{"inputs":[{"name":"X","datatype":"FP32","shape":[1],"data":[1]}]}'
        )
        assert connection.getresponse().read()
        assert tracer.wait() == WHOLE
    connection.close()


def test_a_call_that_is_not_sampled_is_served(server, tracer):
    tracer.chooses = False
    assert server.call("POST", PATH, BODY).status == 200
    assert len(tracer.sampled) == 1
    assert tracer.ended == []


def test_a_call_that_fails_ends_its_trace(server, engine, tracer):
    engine.answer = lambda request: [InferResponse.failed(request, Internal("no"))]
    assert server.call("POST", PATH, BODY).status == 500
    assert tracer.wait() == WHOLE


def test_a_refused_call_ends_its_trace(server, engine, tracer):
    engine.error = Internal("refused")
    assert server.call("POST", PATH, BODY).status == 500
    assert tracer.wait() == WHOLE


def test_an_invalid_request_is_not_traced(server, tracer):
    assert server.call("POST", PATH, b"{oops").status != 200
    assert tracer.sampled == []


def test_a_disconnect_ends_the_trace(server, engine, tracer):
    engine.hold = True
    connection = server.connect()
    connection.request(
        "POST", PATH, b'{"inputs":[{"name":"X","datatype":"FP32","shape":[1],"data":[1]}]}'
    )
    assert engine.arrived.wait(20)
    connection.close()
    server.loop.call_soon_threadsafe(engine.release)
    assert tracer.wait() == WHOLE
