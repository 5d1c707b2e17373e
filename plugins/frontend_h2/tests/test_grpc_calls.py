from __future__ import annotations

import pytest

from plugins.frontend_grpc.tests.fake_engine import run
from plugins.frontend_grpc.tests.wire.scenarios.messages import asked
from plugins.frontend_grpc.tests.wire.scenarios.serving import *  # noqa: F403
from tritonpy_frontend_h2.grpc_calls import MOST_FIELDS, MOST_HEADS

from .h2_like import Server, Stream


def test_a_head_that_is_too_large_exhausts_a_resource():
    async def scenario():
        stream = Stream()
        Server().calls.refuse(stream, 20_000, 16_384)
        assert (await stream.outcome())[:2] == (8, "received metadata size exceeds hard limit (20000 vs. 16384)")

    run(scenario)


def test_pseudo_headers_are_no_metadata():
    async def scenario():
        server = Server()
        call = server.stream("ModelInfer", asked("later"), metadata=((b"x-key", b"v"),)).receiver
        assert call.metadata() == (("user-agent", "test"), ("x-key", "v"))

    run(scenario)


@pytest.mark.parametrize("count", [1, 2 * MOST_HEADS])
def test_what_follows_from_heads_is_kept_for_some_of_them(count):
    async def scenario():
        server = Server()
        for _ in range(count):
            assert (await server.stream("ModelInfer", asked()).outcome())[0] == 0
        assert len(server.calls._heads) <= MOST_HEADS

    run(scenario)


def test_heads_with_many_fields_are_not_kept():
    async def scenario():
        server = Server()
        for count in (1, MOST_FIELDS):
            await server.stream("ModelInfer", asked(), metadata=((b"x-key", b"v"),) * count).outcome()
        assert len(server.calls._heads) == 1

    run(scenario)


def test_calls_with_the_same_list_share_their_head():
    async def scenario():
        server = Server()
        headers = [(b":method", b"POST"), (b":path", b"/a.B/C"), (b"content-type", b"application/grpc")]
        one, other = (server.calls.begin(Stream(), headers, ended=False) for _ in range(2))
        assert one.head is other.head
        one.reset()
        other.reset()

    run(scenario)
