from __future__ import annotations

import subprocess
import sys

import pytest

from plugins.frontend_grpc.tests.wire.scenarios.frames import frame
from tritonpy_frontend_h2.long_message import LONGEST, SHORTEST, LongMessage, is_long

MESSAGE = bytes(range(256)) * (SHORTEST // 256)


@pytest.mark.parametrize("packed", [0, 1])
def test_a_message_is_its_parts_wherever_they_were_cut(packed):
    body = frame(MESSAGE, packed)
    message = LongMessage(body[:100])
    message.add(memoryview(body)[100:5000])
    room = message.room()
    room[:1000] = body[5000:6000]
    message.filled(1000)
    assert message.missing == len(body) - 6000
    message.add(body[6000:])
    assert message.missing == 0
    assert message.frame() == (packed, MESSAGE)


def test_a_message_is_bytes_and_no_copy_of_what_was_read():
    message = LongMessage(frame(MESSAGE)[:5])
    room = message.room()
    room[:] = MESSAGE
    message.filled(len(MESSAGE))
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
        (b"\0" + (LONGEST + 1).to_bytes(4, "big"), False),
        (b"", False),
    ],
)
def test_room_is_made_for_long_messages_that_are_on_their_way(start, expected):
    assert is_long(start) is expected


ANNOUNCED = """
from resource import getpagesize
from tritonpy.interpreter import prepare_interpreter
from tritonpy_frontend_h2.long_message import LongMessage

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * getpagesize()

prepare_interpreter()
before = resident()
announced = [LongMessage((31 << 20).to_bytes(5, "big")) for _ in range(30)]
print(resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only there memory is counted so")
def test_what_is_only_announced_takes_no_memory():
    done = subprocess.run([sys.executable, "-c", ANNOUNCED], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 50 * 2**20
