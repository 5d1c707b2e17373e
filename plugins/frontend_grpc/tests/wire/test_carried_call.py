from __future__ import annotations

import asyncio
import gzip
import zlib

import pytest

from tritonpy import Internal, InvalidArgument, now_ns
from tritonpy_frontend_grpc.wire.carried_call import CarriedCall
from tritonpy_frontend_grpc.wire.frames import Frame
from tritonpy_frontend_grpc.wire.head import Head


class Call(CarriedCall):
    def __init__(self, *headers):
        self.head = Head("POST", "/a.B/C", headers)
        self.expired = asyncio.Event()

    def expire(self):
        self.expired.set()


def test_a_calls_metadata_is_that_of_its_head():
    assert Call((b"key", b"value"), (b"te", b"trailers")).metadata() == (("key", "value"),)


def test_a_call_expires_when_its_time_is_over():
    async def scenario():
        call = Call((b"grpc-timeout", b"10m"))
        before = now_ns()
        call.limit_time()
        assert before + 10**7 <= call.deadline_ns() <= now_ns() + 10**7
        await asyncio.wait_for(call.expired.wait(), 20)

    asyncio.run(scenario())


@pytest.mark.parametrize("headers", [(), ((b"grpc-timeout", b"soon"),)])
def test_a_call_without_a_time_out_has_no_deadline(headers):
    call = Call(*headers)
    call.limit_time()
    assert call.deadline_ns() == 0
    call.done()


def test_a_call_that_is_done_does_not_expire_and_says_so_to_everybody_who_asked():
    async def scenario():
        call, heard = Call((b"grpc-timeout", b"1S")), []
        call.limit_time()
        call.when_done(lambda: heard.append(1))
        call.when_done(lambda: heard.append(2))
        call.done()
        assert heard == [1, 2]
        assert call._expiry.cancelled()

    asyncio.run(scenario())


def test_a_frame_is_compressed_in_the_way_that_the_head_says():
    assert Call().unframed(Frame(0, b"a")) == b"a"
    for call, packed in (
        (Call(), 1),
        (Call((b"grpc-encoding", b"identity")), 1),
        (Call((b"grpc-encoding", b"gzip")), 2),
    ):
        with pytest.raises(Internal, match="the call does not say how"):
            call.unframed(Frame(packed, b"a"))


MESSAGE = b"\x0a\x01m"
GZIP, DEFLATE = gzip.compress(MESSAGE), zlib.compress(MESSAGE)


@pytest.mark.parametrize(
    ("encoding", "message"), [(b"gzip", GZIP), (b"deflate", DEFLATE), (b"gzip", b""), (b"deflate", b"")]
)
def test_a_message_that_is_compressed_as_its_call_says_is_taken(encoding, message):
    assert Call((b"grpc-encoding", encoding)).unframed(Frame(1, message)) == message


@pytest.mark.parametrize(
    ("encoding", "message"), [(b"gzip", MESSAGE), (b"deflate", MESSAGE), (b"gzip", DEFLATE), (b"deflate", GZIP)]
)
def test_a_message_that_is_not_compressed_as_its_call_says_is_refused_in_grpc_s_words(encoding, message):
    with pytest.raises(Internal, match=f"Unexpected error decompressing data for algorithm {encoding.decode()}"):
        Call((b"grpc-encoding", encoding)).unframed(Frame(1, message))


@pytest.mark.parametrize("message", [GZIP, DEFLATE])
def test_a_compressed_message_that_is_not_marked_so_is_refused(message):
    with pytest.raises(InvalidArgument, match="compressed and not marked so"):
        Call((b"grpc-encoding", b"gzip")).unframed(Frame(0, message))
