from __future__ import annotations

import asyncio
import logging

import pytest

from plugins.frontend_grpc.tests.fake_engine import run
from plugins.frontend_grpc.tests.wire.scenarios.frames import frame, headers_of, path_of
from plugins.frontend_grpc.tests.wire.scenarios.messages import answered, asked
from plugins.frontend_grpc.tests.wire.scenarios.serving import *  # noqa: F403
from tritonpy import ApiCategory, Restriction

from .pyvoy_like import Server, Stream


def stream_of(server, name="ModelInfer", body=None, ended=True, **headers):
    """A call that has not begun."""
    scope = {"type": "http", "method": "POST", "path": path_of(name), "headers": headers_of(headers, ())}
    return Stream(server, scope, frame(asked()) if body is None else body, ended)


def asks_ahead(server, stream):
    return server.application.ask_ahead(stream._scope, stream.receive, stream.send)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["on the loop", "in another thread"])
def test_the_body_of_an_inference_is_asked_for_wherever_its_head_comes(elsewhere):
    async def scenario():
        server = Server()
        stream = stream_of(server, body=b"", ended=False)
        begun = await asyncio.to_thread(asks_ahead, server, stream) if elsewhere else asks_ahead(server, stream)
        assert begun
        assert len(stream.asked) == 1
        stream.feed(frame(asked(request_id="1")), ended=True)
        status, _, (message,) = await stream.outcome()
        assert (status, answered(message)[0]) == (0, "1")

    run(scenario)


@pytest.mark.parametrize("name", ["ServerLive", "ModelStreamInfer"])
def test_other_methods_begin_on_the_loop(name):
    async def scenario():
        server = Server()
        assert not asks_ahead(server, stream_of(server, name))

    run(scenario)


def test_what_is_no_grpc_call_begins_on_the_loop():
    async def scenario():
        server = Server()
        assert not asks_ahead(server, stream_of(server, content_type=b"text/plain"))

    run(scenario)


def test_who_calls_is_asked_on_the_loop():
    async def scenario():
        server = Server(restricted_apis=(Restriction((ApiCategory.INFERENCE,), "admin-key", "s3cret"),))
        assert not asks_ahead(server, stream_of(server))

    run(scenario)


def test_a_call_that_is_told_begins_on_the_loop(caplog):
    async def scenario():
        server = Server()
        with caplog.at_level(logging.DEBUG, "tritonpy.grpc"):
            assert not asks_ahead(server, stream_of(server))

    run(scenario)


def test_a_head_that_is_not_grpcs_is_told_so_when_the_body_is_there():
    async def scenario():
        server = Server()
        stream = stream_of(server, te=b"gzip")
        assert asks_ahead(server, stream)
        assert (await stream.outcome())[:2] == (2, "Bad :te header")
        assert server.at_rest()

    run(scenario)


class AtHand:
    """What pyvoy's `receive` returns where there is no body."""

    def __await__(self):
        return self

    def __next__(self):
        raise StopIteration({"type": "http.request", "body": b"", "more_body": False})


def test_a_call_without_a_body_is_answered_on_the_loop():
    async def scenario():
        server = Server()
        stream = stream_of(server)
        stream.receive = AtHand
        assert await asyncio.to_thread(asks_ahead, server, stream)
        assert (await stream.outcome())[0] == 12

    run(scenario)


def test_a_client_that_leaves_before_its_body_leaves_nothing():
    async def scenario():
        server = Server()
        stream = stream_of(server, body=b"", ended=False)
        assert asks_ahead(server, stream)
        stream.leave()
        await asyncio.sleep(0)
        assert server.at_rest()
        assert stream.status == 0  # nothing was sent

    run(scenario)
