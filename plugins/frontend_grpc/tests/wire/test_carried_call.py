from __future__ import annotations

import asyncio

import pytest

from tritonpy import Internal, now_ns
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
    assert Call((b"grpc-encoding", b"gzip")).unframed(Frame(1, b"packed")) == b"packed"
    for call, packed in (
        (Call(), 1),
        (Call((b"grpc-encoding", b"identity")), 1),
        (Call((b"grpc-encoding", b"gzip")), 2),
    ):
        with pytest.raises(Internal, match="the call does not say how"):
            call.unframed(Frame(packed, b"a"))
