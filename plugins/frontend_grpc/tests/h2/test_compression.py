from __future__ import annotations

import asyncio
import random

import pytest

from tritonpy_frontend_grpc.decompression import decompress
from tritonpy_frontend_grpc.h2.compression import LEVELS, choose_compression, frame_message
from tritonpy_frontend_grpc.h2.message_frames import MessageReader

BOTH = {b"grpc-accept-encoding": b"identity, deflate,gzip"}


@pytest.mark.parametrize(
    ("level", "headers", "name"),
    [("low", BOTH, "gzip"), ("medium", BOTH, "deflate"), ("high", BOTH, "deflate"), ("low", {}, None), ("none", BOTH, None)],
)  # fmt: skip
def test_the_compression_depends_on_level_and_client(level, headers, name):
    chosen = choose_compression(LEVELS[level], headers)
    assert (chosen and chosen.name) == name


def one(body):
    frames = MessageReader()
    frames.feed(body)
    return frames.next()


@pytest.mark.parametrize("level", ["low", "medium"])
@pytest.mark.parametrize("size", [1000, 100_000])
def test_compressible_messages_are_compressed(level, size):
    compressed, message = one(asyncio.run(frame_message(bytes(size), LEVELS[level])))
    assert compressed == 1
    assert len(message) < size
    assert decompress(message, size) == bytes(size)


@pytest.mark.parametrize("message", [b"", b"x", random.Random(0).randbytes(10_000)])
def test_incompressible_messages_are_sent_unchanged(message):
    assert one(asyncio.run(frame_message(message, LEVELS["low"]))) == (0, message)
