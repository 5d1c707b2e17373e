from __future__ import annotations

import subprocess
import sys

import pytest

from tritonpy_frontend_grpc.h2.long_message import MAX_BYTES, MIN_BYTES, LongMessage, is_long

from .messages import frame

MESSAGE = bytes(range(256)) * (MIN_BYTES // 256)


@pytest.mark.parametrize("compressed", [0, 1])
def test_a_message_is_assembled_from_any_parts(compressed):
    body = frame(MESSAGE, compressed)
    message = LongMessage(body[:100])
    message.add(memoryview(body)[100:5000])
    body_buffer = message.body_buffer()
    body_buffer[:1000] = body[5000:6000]
    message.body_buffer_updated(1000)
    assert message.missing == len(body) - 6000
    message.add(body[6000:])
    assert message.missing == 0
    assert message.frame() == (compressed, MESSAGE)


def test_a_message_is_bytes_without_a_copy():
    message = LongMessage(frame(MESSAGE)[:5])
    body_buffer = message.body_buffer()
    body_buffer[:] = MESSAGE
    message.body_buffer_updated(len(MESSAGE))
    assert type(message.frame().message) is bytes
    assert message.frame().message is message.frame().message


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (frame(MESSAGE)[:5], True),
        (frame(MESSAGE)[:-1], True),
        (frame(MESSAGE), False),
        (frame(MESSAGE)[:4], False),
        (frame(b"short")[:-1], False),
        (b"\0" + (MAX_BYTES + 1).to_bytes(4, "big"), False),
        (b"", False),
    ],
)
def test_buffers_are_allocated_for_incomplete_long_messages(start, expected):
    assert is_long(start) is expected


ALLOCATE = """
from resource import getpagesize
from tritonpy.server.interpreter import prepare_interpreter
from tritonpy_frontend_grpc.h2.long_message import LongMessage

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * getpagesize()

prepare_interpreter()
before = resident()
messages = [LongMessage((31 << 20).to_bytes(5, "big")) for _ in range(30)]
print(resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_unreceived_bytes_use_no_memory():
    done = subprocess.run(
        [sys.executable, "-c", ALLOCATE], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 50 * 2**20
