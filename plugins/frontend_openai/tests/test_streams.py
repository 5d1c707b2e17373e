"""Clients that leave, read slowly, or wait for the first token."""

from __future__ import annotations

import json
import socket
import threading

import httpx

from tritonpy.metrics import FamilySnapshot, MetricKind, MetricSnapshot

from .conftest import WAIT_S

BODY = {"model": "story", "messages": [{"role": "user", "content": "Hi"}], "stream": True}


def open_stream(live, **members):
    body = json.dumps(BODY | members).encode()
    stream = socket.create_connection(("127.0.0.1", live.port), WAIT_S)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    stream.sendall(head.encode() + body)
    return stream


def read_until(stream, mark):
    received = b""
    while mark not in received:
        part = stream.recv(65536)
        assert part, received
        received += part
    return received


def endless(call):
    while not call.request.cancelled:
        yield "token "


def test_a_client_that_leaves_cancels_its_request(live, engine):
    engine.script = endless
    stream = open_stream(live)
    read_until(stream, b"token")
    stream.close()
    assert engine.cancelled.wait(WAIT_S)


def test_a_client_that_leaves_before_the_first_token_cancels_its_request(live, engine):
    began, left = threading.Event(), threading.Event()

    def silent(call):
        began.set()
        left.wait(WAIT_S)
        return ()

    engine.script = silent
    for stream in (True, False):
        began.clear()
        engine.cancelled.clear()
        connection = open_stream(live, stream=stream)
        assert began.wait(WAIT_S)
        connection.close()
        assert engine.cancelled.wait(WAIT_S)
    left.set()


def test_all_choices_of_a_client_that_leaves_are_cancelled(live, engine):
    engine.script = endless
    stream = open_stream(live, n=3)
    read_until(stream, b"token")
    stream.close()
    assert engine.cancelled.wait(WAIT_S)
    for call in engine.calls:
        while not call.request.finished:
            pass


def test_a_slow_client_holds_up_its_model_only(start, engine):
    live = start(max_waiting_answers=4)
    written = []

    def many(call):
        if "quick" in call.prompt:
            return ["done"]
        return wide(call)

    def wide(call):
        while not call.request.cancelled:
            written.append(1)
            yield "x" * 65536

    engine.script = many
    slow = open_stream(live)
    read_until(slow, b"xxx")
    quick = live.chat(messages=[{"role": "user", "content": "quick"}])
    assert quick.json["choices"][0]["message"]["content"] == "done"
    before = -1
    while before != len(written):  # the kernel's buffers are full
        before = len(written)
        threading.Event().wait(0.2)
    slow.close()
    assert engine.cancelled.wait(WAIT_S)


def test_a_stream_that_waits_gets_comments(start, engine):
    live = start(heartbeat_s=0.05)
    release = threading.Event()

    def late(call):
        release.wait(WAIT_S)
        return ["late"]

    engine.script = late
    stream = open_stream(live)
    received = read_until(stream, b": waiting\n\n")
    assert b"200 OK" in received
    release.set()
    received += read_until(stream, b"[DONE]")
    stream.close()
    assert received.count(b'"role":"assistant"') == 1
    assert b"late" in received


def test_memory_of_bodies_is_released(live, engine):
    engine.script = lambda call: ["ok"]
    assert live.chat(messages=[{"role": "user", "content": "x" * 300_000}]).status == 200
    while live.memory.used:
        threading.Event().wait(0.01)


def test_requests_in_flight_end_before_the_frontend_stops(live, engine):
    release = threading.Event()

    def held(call):
        yield "a"
        release.wait(WAIT_S)
        yield "b"

    engine.script = held
    stream = open_stream(live)
    received = read_until(stream, b'"a"')
    drained = threading.Thread(target=lambda: live.run(live.frontend.drain()))
    drained.start()
    while not live.frontend._application.draining:
        threading.Event().wait(0.01)
    release.set()
    received += read_until(stream, b"[DONE]")
    drained.join(WAIT_S)
    stream.close()
    assert b'"b"' in received


def test_the_load_of_the_engine_is_a_header_if_the_client_asks_for_it(live, engine, monkeypatch):
    waiting = FamilySnapshot(
        "vllm:num_requests_waiting", "", MetricKind.GAUGE, [MetricSnapshot({"model": "story"}, 4)]
    )
    monkeypatch.setattr(engine, "custom_metrics", lambda: [waiting])
    for stream in (False, True):
        response = httpx.post(
            f"http://127.0.0.1:{live.port}/v1/chat/completions",
            json=BODY | {"stream": stream},
            headers={"endpoint-load-metrics-format": "text"},
            timeout=WAIT_S,
        )
        assert (
            response.headers["endpoint-load-metrics"] == "TEXT named_metrics.num_requests_waiting=4"
        )
        assert response.status_code == 200
    url = f"http://127.0.0.1:{live.port}/v1/chat/completions"
    plain = httpx.post(url, json=BODY | {"stream": False}, timeout=WAIT_S)
    assert "endpoint-load-metrics" not in plain.headers
