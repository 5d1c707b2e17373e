from __future__ import annotations

import asyncio
import logging
import threading
from types import SimpleNamespace

import pytest

from tritonpy_frontend_envoy.embedded.loops import ANSWERED, NextFuture
from tritonpy_frontend_envoy.embedded.patrol import Patrol
from tritonpy_frontend_envoy.embedded.reception import Surroundings
from tritonpy_frontend_envoy.http.application import HttpApplication

LOG = logging.getLogger("tritonpy.http")
SCOPE = {"method": "GET", "path": "/v2", "raw_path": b"/v2", "headers": [], "client": ("127.0.0.1", 1)}


def application(answer, stall_s=30.0, access=None):
    around = Surroundings(Patrol(asyncio.get_running_loop()), NextFuture(), stall_s)
    composition = SimpleNamespace(
        calls=SimpleNamespace(tracer=SimpleNamespace(active=False)), access=access, application=answer
    )
    return HttpApplication(composition, around, LOG)


class Sent:
    """Takes messages, or has lost its client."""

    def __init__(self, gone=False):
        self.messages, self.gone = [], gone

    async def __call__(self, message):
        if self.gone:
            raise OSError
        self.messages.append(message)


def answered(answer, sent, receive=None, **more):
    async def run():
        app = application(answer, **more)
        await app(dict(SCOPE), receive, sent)
        await app.idle()

    asyncio.run(run())
    return sent.messages


async def hello(scope, receive, send):
    assert scope["state"] == {}
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


async def failing(scope, receive, send):
    raise ValueError("secret")


async def reading(scope, receive, send):
    while (await receive())["type"] != "http.disconnect":
        pass
    await send({"type": "http.response.start", "status": 400, "headers": []})
    await send({"type": "http.response.body", "body": b"it left"})


def test_what_is_no_inference_goes_to_the_asgi_application():
    assert [message.get("body") for message in answered(hello, Sent())] == [None, b"hello"]


def test_an_unexpected_error_is_an_incident_without_its_words():
    start, body = answered(failing, Sent())
    assert start["status"] == 500
    assert b"secret" not in body["body"]


def test_a_client_that_left_is_no_error():
    assert answered(hello, Sent(gone=True)) == []


def test_a_body_that_stands_still_is_answered_408():
    async def never():
        await asyncio.Event().wait()

    start, body = answered(reading, Sent(), never, stall_s=0.001)
    assert (start["status"], body["body"]) == (408, b'{"error":"The request took too long to arrive"}')


class Receiving:
    """pyvoy's `receive`: notes who waits."""

    def __init__(self, app):
        self.app, self.waiting = app, []

    def __call__(self):
        next_future = self.app._around.next_future
        self.waiting.append(next_future.waiter)
        next_future.waiter = None


INFERENCE = {**SCOPE, "method": "POST", "raw_path": b"/v2/models/m/infer"}


def test_an_inference_needs_no_task():
    async def run():
        app = application(None)
        receive = Receiving(app)
        return app(INFERENCE, receive, None), len(receive.waiting)

    assert asyncio.run(run()) == (ANSWERED, 1)


def test_the_body_of_an_inference_is_asked_for_in_the_thread_that_brings_its_head():
    async def run():
        app = application(None)
        receive = Receiving(app)
        assert await asyncio.to_thread(app.ask_ahead, INFERENCE, receive, None)
        assert not app._around.patrol._young  # the loop has not heard of it
        (stream,) = receive.waiting
        stream.set_result({"type": "http.disconnect"})
        assert stream.watched

    asyncio.run(run())


def test_what_is_at_hand_of_a_body_asked_for_ahead_comes_on_the_loop():
    class There:
        def __await__(self):
            return {"type": "http.disconnect"}
            yield

    async def run():
        app, threads = application(None), []
        watch = app._around.patrol.watch
        app._around.patrol.watch = lambda stream: (threads.append(threading.current_thread()), watch(stream))
        assert await asyncio.to_thread(app.ask_ahead, INFERENCE, There, None)
        await asyncio.sleep(0)
        assert threads == [threading.main_thread()]

    asyncio.run(run())


@pytest.mark.parametrize(
    "scope", [SCOPE, {**INFERENCE, "method": "GET"}, {**INFERENCE, "raw_path": b"/v2/models/m/load"}]
)
def test_nothing_is_asked_for_ahead_of_what_is_no_inference(scope):
    async def run():
        app = application(None)
        return app.ask_ahead(dict(scope), Receiving(app), None)

    assert not asyncio.run(run())


def test_nothing_is_asked_for_ahead_where_callers_may_be_refused():
    async def run():
        app = application(None, access=object())
        return app.ask_ahead(INFERENCE, Receiving(app), None)

    assert not asyncio.run(run())


def test_it_is_idle_when_every_answer_is_complete():
    async def run():
        go_on = asyncio.Event()

        async def slow(scope, receive, send):
            await go_on.wait()

        app = application(slow)
        answering = asyncio.create_task(app(dict(SCOPE), None, Sent()))
        await asyncio.sleep(0)
        idle = asyncio.create_task(app.idle())
        await asyncio.sleep(0)
        assert not idle.done()
        go_on.set()
        await asyncio.wait_for(asyncio.gather(answering, idle), 30)

    asyncio.run(run())
