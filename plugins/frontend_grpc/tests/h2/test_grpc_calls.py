from __future__ import annotations

import pytest

from tritonpy_frontend_grpc.h2.grpc_calls import MAX_FIELDS, MAX_HEADS

from ..fake_engine import run
from .fake_streams import FakeStream, Server
from .messages import infer_request


def test_an_oversized_head_is_resource_exhausted():
    async def scenario():
        stream = FakeStream()
        Server().calls.refuse(stream, 20_000, 16_384)
        assert (await stream.outcome())[:2] == (
            8,
            "received metadata size exceeds hard limit (20000 vs. 16384)",
        )

    run(scenario)


def test_pseudo_headers_are_not_metadata():
    async def scenario():
        server = Server()
        call = server.stream(
            "ModelInfer", infer_request("later"), metadata=((b"x-key", b"v"),)
        ).receiver
        assert call.metadata() == (("user-agent", "test"), ("x-key", "v"))

    run(scenario)


@pytest.mark.parametrize("count", [1, 2 * MAX_HEADS])
def test_the_head_cache_is_bounded(count):
    async def scenario():
        server = Server()
        for _ in range(count):
            assert (await server.stream("ModelInfer", infer_request()).outcome())[0] == 0
        assert len(server.calls._heads) <= MAX_HEADS

    run(scenario)


def test_heads_with_many_fields_are_not_cached():
    async def scenario():
        server = Server()
        for count in (1, MAX_FIELDS):
            await server.stream(
                "ModelInfer", infer_request(), metadata=((b"x-key", b"v"),) * count
            ).outcome()
        assert len(server.calls._heads) == 1

    run(scenario)


def test_calls_with_the_same_list_share_their_head():
    async def scenario():
        server = Server()
        headers = [
            (b":method", b"POST"),
            (b":path", b"/a.B/C"),
            (b"content-type", b"application/grpc"),
        ]
        one, other = (server.calls.begin(FakeStream(), headers, ended=False) for _ in range(2))
        assert one.head is other.head
        one.reset()
        other.reset()

    run(scenario)
