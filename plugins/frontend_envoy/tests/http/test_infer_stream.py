from __future__ import annotations

import logging
import time
from types import SimpleNamespace

import pytest

from plugins.frontend_grpc.tests.fake_engine import eventually, run
from tritonpy import PermissionDenied
from tritonpy_frontend_envoy.embedded.loops import NextFuture
from tritonpy_frontend_envoy.embedded.reception import MUCH, Surroundings
from tritonpy_frontend_envoy.http.infer_stream import InferStream
from tritonpy_frontend_http.encode import Reply


class ToyCalls:
    """Keeps what it is given; each call is answered by who calls `finish`."""

    limit = 10
    tracer = SimpleNamespace(active=False)
    log = logging.getLogger("tritonpy.http")

    def __init__(self):
        self.started, self.too_large = [], []

    def start(self, call, target, headers, body):
        self.started.append((call, target, body))

    def refuse_size(self, call, target, headers, size):
        self.too_large.append(size)


class ToyPatrol:
    def __init__(self):
        self.watched = set()
        self.expected = []

    def watch(self, watched):
        self.watched.add(watched)

    def expect(self, expected):
        self.expected.append(expected)

    def forget(self, watched):
        self.watched.discard(watched)


class Client:
    """One call through pyvoy: `gives` hands a message to whoever waits, `sent` is what came back."""

    def __init__(self, headers=None, visit=None, stall_s=30.0, ahead=False, at_hand=None):
        self.calls, self.patrol, self.next_future, self.sent = ToyCalls(), ToyPatrol(), NextFuture(), []
        around = Surroundings(self.patrol, self.next_future, stall_s)
        self.waiting, self.at_hand = None, at_hand
        self.stream = InferStream(
            self.calls, around, ("127.0.0.1", 1), ("model", ""), headers or {}, visit, self.receive, self.sent.append
        )
        self.begun = self.stream.begin_ahead() if ahead else self.stream.begin()

    def receive(self):
        if self.at_hand is not None:
            return _There(self.at_hand)
        self.waiting, self.next_future.waiter = self.next_future.waiter, None
        return None

    def gives(self, body, *, more=False):
        waiting, self.waiting = self.waiting, None
        assert not waiting.cancelled()
        waiting.set_result({"type": "http.request", "body": body, "more_body": more})

    def leaves(self):
        waiting, self.waiting = self.waiting, None
        waiting.set_result({"type": "http.disconnect"})

    @property
    def call(self):
        return self.calls.started[0][0]


class _There:
    """What pyvoy returns where it need not wait."""

    def __init__(self, message):
        self.message = message

    def __await__(self):
        return self.message
        yield


REPLY = Reply(200, [(b"content-length", b"4")], (b"re", memoryview(b"ply")[:2]), 4)


def test_a_body_in_one_piece_is_handed_on_and_the_reply_is_one_message():
    client = Client()
    client.gives(b"body")
    assert [(target, body) for _, target, body in client.calls.started] == [(("model", ""), b"body")]
    client.call.finish(REPLY)
    start, body = client.sent
    assert (start["status"], start["headers"]) == (200, REPLY.headers)
    assert body == {"type": "http.response.body", "body": b"repl"}
    assert client.patrol.watched == set()


def test_a_body_in_parts_is_handed_on_when_it_is_complete():
    client = Client()
    client.gives(b"on", more=True)
    assert client.patrol.watched == {client.stream}
    client.gives(b"e", more=True)
    assert client.calls.started == []
    client.gives(b"")
    assert client.calls.started[0][2] == b"one"


def test_a_large_body_is_asked_for_in_large_parts():
    async def scenario():
        client = Client({b"content-length": b"%d" % (MUCH + 16)})
        client.gives(b"a" * 8, more=True)
        assert client.waiting is None  # more of it has to come first
        await eventually(lambda: client.waiting)
        client.gives(b"b" * 10, more=True)
        assert client.waiting is not None  # little is missing
        client.leaves()

    run(scenario)


def test_a_body_that_is_too_large_is_read_and_not_kept():
    client = Client()
    for _ in range(3):
        client.gives(b"12345", more=True)
        kept = client.stream._parts
    client.gives(b"")
    assert kept == []
    assert (client.calls.started, client.calls.too_large) == ([], [15])


def test_binary_tensors_may_be_larger():
    client = Client({b"inference-header-content-length": b"5"})
    for _ in range(3):
        client.gives(b"12345", more=True)
    client.gives(b"")
    assert client.calls.started[0][2] == b"12345" * 3


def test_the_body_of_a_refused_call_is_dropped():
    client = Client(visit=SimpleNamespace(refusal=PermissionDenied("no")))
    client.gives(b"12345", more=True)
    client.gives(b"1")
    assert client.calls.started[0][2] == b""
    assert client.call.visit.refusal.message == "no"


def test_one_that_is_asked_for_ahead_is_watched_from_its_first_part_on():
    client = Client(ahead=True)
    assert (client.begun, client.patrol.expected, client.patrol.watched) == (None, [client.stream], set())
    client.gives(b"bo", more=True)
    assert (client.stream.watched, client.patrol.watched) == (True, {client.stream})
    client.gives(b"dy")
    assert client.calls.started[0][2] == b"body"
    client.call.finish(REPLY)
    assert client.patrol.watched == set()


def test_what_is_at_hand_ahead_is_for_the_loop_to_give():
    client = Client(ahead=True, at_hand={"type": "http.request", "body": b"", "more_body": False})
    assert (client.calls.started, client.patrol.expected) == ([], [])
    client.stream.set_result(client.begun)
    assert client.calls.started[0][2] == b""


def test_a_client_that_leaves_before_the_body_that_was_asked_for_ahead_is_forgotten():
    client = Client(ahead=True)
    client.leaves()
    assert (client.calls.started, client.patrol.watched, client.stream.watched) == ([], set(), True)


def test_a_client_that_leaves_takes_its_request_with_it_and_gets_no_reply():
    client, cancelled = Client(), []
    client.gives(b"body")
    client.call.request = SimpleNamespace(cancel=lambda: cancelled.append(True))
    client.stream.look()
    client.gives(b"")  # it is still there
    assert cancelled == []
    client.stream.look()
    client.leaves()
    assert cancelled == [True]
    client.call.finish(REPLY)
    assert client.sent == []


def test_a_client_that_leaves_in_the_middle_of_its_body_begins_nothing():
    client = Client()
    client.gives(b"bo", more=True)
    client.leaves()
    assert client.calls.started == []
    assert client.patrol.watched == set()


def test_a_body_that_stands_still_is_refused_when_its_time_is_over(monkeypatch, caplog):
    client = Client(stall_s=30)
    client.gives(b"bo", more=True)
    client.stream.look()
    assert client.sent == []
    later = time.monotonic() + 31
    monkeypatch.setattr(time, "monotonic", lambda: later)
    client.stream.look()
    client.stream.look()
    assert client.sent[0]["status"] == 408
    assert (b"connection", b"close") in client.sent[0]["headers"]
    assert "refused a request from 127.0.0.1:1: The request took too long to arrive" in caplog.messages
    client.gives(b"dy")
    assert client.calls.started == []


def test_a_part_that_came_while_the_loop_was_busy_is_in_time(monkeypatch):
    client = Client(stall_s=30)
    client.gives(b"bo", more=True)
    later = time.monotonic() + 31
    monkeypatch.setattr(time, "monotonic", lambda: later)
    client.stream.look()
    client.gives(b"d", more=True)
    client.stream.look()
    client.gives(b"y")
    assert client.sent == []
    assert client.calls.started[0][2] == b"body"


def test_a_body_that_never_begins_is_refused_when_its_time_is_over(monkeypatch):
    client = Client(stall_s=30)
    client.stream.look()
    assert client.sent == []
    later = time.monotonic() + 31
    monkeypatch.setattr(time, "monotonic", lambda: later)
    client.stream.look()
    client.stream.look()
    assert client.sent[0]["status"] == 408
    assert client.patrol.watched == set()


@pytest.mark.parametrize("level", [logging.INFO, logging.DEBUG])
def test_each_request_is_told_where_that_is_wanted(caplog, level):
    caplog.set_level(level, "tritonpy.http")
    client = Client()
    client.gives(b"body")
    client.call.finish(REPLY)
    assert ("POST /v2/models/model/infer: 200" in caplog.messages) == (level == logging.DEBUG)
