from __future__ import annotations

import asyncio
import gzip
import zlib

import pytest

from tritonpy import Internal, InvalidArgument, now_ns
from tritonpy_frontend_grpc.h2.h2_call import H2Call
from tritonpy_frontend_grpc.h2.head import CallHead
from tritonpy_frontend_grpc.h2.message_frames import MessageFrame


class FakeCall(H2Call):
    def __init__(self, *headers):
        self.head = CallHead("POST", "/a.B/C", headers)
        self.expired = asyncio.Event()

    def expire(self):
        self.expired.set()


def test_a_call_has_the_metadata_of_its_head():
    assert FakeCall((b"key", b"value"), (b"te", b"trailers")).metadata() == (("key", "value"),)


def test_a_call_expires_at_its_deadline():
    async def scenario():
        call = FakeCall((b"grpc-timeout", b"10m"))
        before = now_ns()
        call.start_deadline()
        assert before + 10**7 <= call.deadline_ns() <= now_ns() + 10**7
        await asyncio.wait_for(call.expired.wait(), 20)

    asyncio.run(scenario())


@pytest.mark.parametrize("headers", [(), ((b"grpc-timeout", b"soon"),)])
def test_a_call_without_a_timeout_has_no_deadline(headers):
    call = FakeCall(*headers)
    call.start_deadline()
    assert call.deadline_ns() == 0
    call.done()


def test_a_finished_call_does_not_expire_and_runs_its_callbacks():
    async def scenario():
        call, notified = FakeCall((b"grpc-timeout", b"1S")), []
        call.start_deadline()
        call.when_done(lambda: notified.append(1))
        call.when_done(lambda: notified.append(2))
        call.done()
        assert notified == [1, 2]
        assert call._expiry.cancelled()

    asyncio.run(scenario())


def test_the_compression_flag_requires_an_encoding():
    assert FakeCall().message_of(MessageFrame(0, b"a")) == b"a"
    for call, compressed in (
        (FakeCall(), 1),
        (FakeCall((b"grpc-encoding", b"identity")), 1),
        (FakeCall((b"grpc-encoding", b"gzip")), 2),
    ):
        with pytest.raises(Internal, match="the call has no grpc-encoding"):
            call.message_of(MessageFrame(compressed, b"a"))


MESSAGE = b"\x0a\x01m"
GZIP, DEFLATE = gzip.compress(MESSAGE), zlib.compress(MESSAGE)


@pytest.mark.parametrize(
    ("encoding", "message"),
    [(b"gzip", GZIP), (b"deflate", DEFLATE), (b"gzip", b""), (b"deflate", b"")],
)
def test_a_message_in_the_declared_encoding_is_accepted(encoding, message):
    assert FakeCall((b"grpc-encoding", encoding)).message_of(MessageFrame(1, message)) == message


@pytest.mark.parametrize(
    ("encoding", "message"),
    [(b"gzip", MESSAGE), (b"deflate", MESSAGE), (b"gzip", DEFLATE), (b"deflate", GZIP)],
)
def test_a_message_in_another_encoding_has_the_error_text_of_grpc(encoding, message):
    with pytest.raises(
        Internal, match=f"Unexpected error decompressing data for algorithm {encoding.decode()}"
    ):
        FakeCall((b"grpc-encoding", encoding)).message_of(MessageFrame(1, message))


@pytest.mark.parametrize("message", [GZIP, DEFLATE])
def test_a_compressed_message_without_the_flag_is_refused(message):
    with pytest.raises(InvalidArgument, match="compressed but not marked as compressed"):
        FakeCall((b"grpc-encoding", b"gzip")).message_of(MessageFrame(0, message))
