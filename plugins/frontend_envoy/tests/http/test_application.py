from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace

from tritonpy_frontend_envoy.embedded.loops import ANSWERED, NextFuture
from tritonpy_frontend_envoy.embedded.patrol import Patrol
from tritonpy_frontend_envoy.embedded.reception import Surroundings
from tritonpy_frontend_envoy.http.application import HttpApplication

LOG = logging.getLogger("tritonpy.http")
SCOPE = {"method": "GET", "path": "/v2", "raw_path": b"/v2", "headers": [], "client": ("127.0.0.1", 1)}


def application(answer, stall_s=30.0):
    around = Surroundings(Patrol(asyncio.get_running_loop()), NextFuture(), stall_s)
    composition = SimpleNamespace(
        calls=SimpleNamespace(tracer=SimpleNamespace(active=False)), access=None, application=answer
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


def test_an_inference_needs_no_task():
    async def run():
        asked = []
        app = application(None)

        def receive():
            asked.append(app._around.next_future.waiter)
            app._around.next_future.waiter = None

        scope = {**SCOPE, "method": "POST", "raw_path": b"/v2/models/m/infer"}
        return app(scope, receive, None), len(asked)

    assert asyncio.run(run()) == (ANSWERED, 1)


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
