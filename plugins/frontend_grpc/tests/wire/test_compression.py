from __future__ import annotations

import asyncio
import random

import pytest

from tritonpy_frontend_grpc.unpacking import unpack
from tritonpy_frontend_grpc.wire.compression import LEVELS, accepted, framed
from tritonpy_frontend_grpc.wire.frames import Frames

BOTH = {b"grpc-accept-encoding": b"identity, deflate,gzip"}


@pytest.mark.parametrize(
    ("level", "headers", "name"),
    [("low", BOTH, "gzip"), ("medium", BOTH, "deflate"), ("high", BOTH, "deflate"), ("low", {}, None), ("none", BOTH, None)],
)  # fmt: skip
def test_answers_are_compressed_as_wanted_where_the_client_takes_that(level, headers, name):
    chosen = accepted(LEVELS[level], headers)
    assert (chosen and chosen.name) == name


def one(body):
    frames = Frames()
    frames.feed(body)
    return frames.next()


@pytest.mark.parametrize("level", ["low", "medium"])
@pytest.mark.parametrize("size", [1000, 100_000])
def test_what_becomes_smaller_is_compressed(level, size):
    packed, message = one(asyncio.run(framed(bytes(size), LEVELS[level])))
    assert packed == 1
    assert len(message) < size
    assert unpack(message, size) == bytes(size)


@pytest.mark.parametrize("message", [b"", b"x", random.Random(0).randbytes(10_000)])
def test_what_does_not_become_smaller_is_sent_as_it_is(message):
    assert one(asyncio.run(framed(message, LEVELS["low"]))) == (0, message)
