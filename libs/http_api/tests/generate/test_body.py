from __future__ import annotations

import asyncio

import pytest

from tritonpy_http_api.generate.body import BodyReader


def read(messages, limit=100):
    remaining = iter(messages)

    async def receive():
        return next(remaining)

    reader = BodyReader(limit)
    return asyncio.run(reader.read(receive, reader.reservation()))


def part(body: bytes, more: bool = True):
    return {"type": "http.request", "body": body, "more_body": more}


def test_the_parts_of_a_body_are_joined():
    assert read([part(b"ab"), part(b""), part(b"c", more=False)]) == (b"abc", 3)
    assert read([{"type": "http.request"}]) == (b"", 0)


def test_a_body_of_the_allowed_size_is_kept():
    assert read([part(b"x" * 60), part(b"x" * 40, more=False)]) == (b"x" * 100, 100)


@pytest.mark.parametrize("sizes", [[101], [60, 41], [60, 60, 60], [100, 0, 1]])
def test_a_larger_body_is_dropped_and_counted(sizes):
    parts = [part(b"x" * size) for size in sizes]
    assert read([*parts, part(b"", more=False)]) == (b"", sum(sizes))


def test_a_disconnect_returns_no_body():
    assert read([part(b"ab"), {"type": "http.disconnect"}]) is None
