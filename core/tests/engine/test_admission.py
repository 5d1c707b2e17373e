from __future__ import annotations

import pytest

from tritonpy import InferRequest, InferResponse, Internal, ModelMetrics, NoOptions, ResourceExhausted, Sharing, Sink
from tritonpy.custom_metrics import CustomMetrics
from tritonpy.engine.admission import Admission


class Policy(Sharing):
    """A sharing policy that admits requests unless `full`, and records them."""

    def __init__(self):
        super().__init__(NoOptions(), ModelMetrics(CustomMetrics()))
        self.full = False
        self.event_log = []

    def admit(self, request):
        if self.full:
            raise ResourceExhausted("full", retry_after_s=3)
        self.event_log.append(("in", request))

    def ended(self, request):
        self.event_log.append(("out", request))


class Client(Sink):
    """A sink that records its calls."""

    def __init__(self):
        self.received = []

    def put(self, request, response):
        self.received.append(response)

    def ready(self, request):
        self.received.append("ready")
        return False

    def when_ready(self, request, callback):
        self.received.append(callback)

    def cancelled(self, request):
        self.received.append("cancelled")


@pytest.fixture
def policy():
    return Policy()


@pytest.fixture
def client():
    return Client()


@pytest.fixture
def request_(client):
    return InferRequest("m", {}, client)


def test_an_admitted_request_reaches_its_model_and_ends_with_its_final_response(policy, client, request_):
    handed = []
    Admission(policy, handed.append).enter(request_)
    assert (handed, policy.event_log) == ([request_], [("in", request_)])
    answers = [InferResponse((), final=False), InferResponse((), final=False), InferResponse(())]
    for answer in answers:
        assert policy.event_log == [("in", request_)]
        request_.sink.put(request_, answer)
    assert policy.event_log == [("in", request_), ("out", request_)]
    assert client.received == answers


def test_a_request_ends_before_its_client_gets_the_response(policy, request_):
    class RepeatingClient(Client):
        def put(self, request, response):
            self.received.append(len(policy.event_log))

    client = request_.sink = RepeatingClient()
    Admission(policy, lambda _: None).enter(request_)
    request_.sink.put(request_, InferResponse(()))
    assert client.received == [2], "a client that sends its next request immediately would be refused"


def test_a_refused_request_does_not_reach_its_model_and_is_not_counted(policy, client, request_):
    policy.full = True
    handed = []
    with pytest.raises(ResourceExhausted, match="full"):
        Admission(policy, handed.append).enter(request_)
    assert (handed, policy.event_log, request_.sink) == ([], [], client)


def test_a_request_refused_by_its_model_ends_and_returns_to_its_caller(policy, client, request_):
    def refuse(_):
        raise Internal("the model refuses")

    with pytest.raises(Internal, match="the model refuses"):
        Admission(policy, refuse).enter(request_)
    assert policy.event_log == [("in", request_), ("out", request_)]
    assert request_.sink is client
    assert client.received == []


def test_flow_control_and_cancellations_reach_the_client(policy, client, request_):
    Admission(policy, lambda _: None).enter(request_)

    def go_on():
        """Do nothing."""

    assert not request_.sink.ready(request_)
    request_.sink.when_ready(request_, go_on)
    request_.sink.cancelled(request_)
    assert client.received == ["ready", go_on, "cancelled"]
    assert policy.event_log == [("in", request_)]
