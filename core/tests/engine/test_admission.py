from __future__ import annotations

import pytest

from tritonpy import InferRequest, InferResponse, Internal, ModelMetrics, NoOptions, ResourceExhausted, Sharing, Sink
from tritonpy.custom_metrics import CustomMetrics
from tritonpy.engine.admission import Admission


class Door(Sharing):
    """Lets in whom `full` does not keep out, and writes down who came and went."""

    def __init__(self):
        super().__init__(NoOptions(), ModelMetrics(CustomMetrics()))
        self.full = False
        self.book = []

    def admit(self, request):
        if self.full:
            raise ResourceExhausted("full", retry_after_s=3)
        self.book.append(("in", request))

    def ended(self, request):
        self.book.append(("out", request))


class Client(Sink):
    """Writes down what it is asked and told."""

    def __init__(self):
        self.heard = []

    def put(self, request, response):
        self.heard.append(response)

    def ready(self, request):
        self.heard.append("ready")
        return False

    def when_ready(self, request, callback):
        self.heard.append(callback)

    def cancelled(self, request):
        self.heard.append("cancelled")


@pytest.fixture
def door():
    return Door()


@pytest.fixture
def client():
    return Client()


@pytest.fixture
def request_(client):
    return InferRequest("m", {}, client)


def test_an_admitted_request_is_handed_over_and_ends_with_its_final_answer(door, client, request_):
    handed = []
    Admission(door, handed.append).enter(request_)
    assert (handed, door.book) == ([request_], [("in", request_)])
    answers = [InferResponse((), final=False), InferResponse((), final=False), InferResponse(())]
    for answer in answers:
        assert door.book == [("in", request_)]
        request_.sink.put(request_, answer)
    assert door.book == [("in", request_), ("out", request_)]
    assert client.heard == answers


def test_it_is_over_before_its_client_hears_of_it(door, request_):
    class Asker(Client):
        def put(self, request, response):
            self.heard.append(len(door.book))

    client = request_.sink = Asker()
    Admission(door, lambda _: None).enter(request_)
    request_.sink.put(request_, InferResponse(()))
    assert client.heard == [2], "whoever sends the next request at once would be refused"


def test_who_is_kept_out_is_not_handed_over_and_has_not_been_in(door, client, request_):
    door.full = True
    handed = []
    with pytest.raises(ResourceExhausted, match="full"):
        Admission(door, handed.append).enter(request_)
    assert (handed, door.book, request_.sink) == ([], [], client)


def test_what_the_model_refuses_is_over_and_its_callers_again(door, client, request_):
    def refuse(_):
        raise Internal("the model refuses")

    with pytest.raises(Internal, match="the model refuses"):
        Admission(door, refuse).enter(request_)
    assert door.book == [("in", request_), ("out", request_)]
    assert request_.sink is client
    assert client.heard == []


def test_the_clients_pace_and_the_cancellation_go_through(door, client, request_):
    Admission(door, lambda _: None).enter(request_)

    def go_on():
        """Do nothing."""

    assert not request_.sink.ready(request_)
    request_.sink.when_ready(request_, go_on)
    request_.sink.cancelled(request_)
    assert client.heard == ["ready", go_on, "cancelled"]
    assert door.book == [("in", request_)]
