from __future__ import annotations

import asyncio

from tritonpy_frontend_http.farewell import MOST_BYTES, Farewell


class Before(asyncio.Protocol):
    lost = 0

    def connection_lost(self, exc):
        self.lost += 1


class Wire(asyncio.Transport):
    """A transport to a client that may have gone."""

    def __init__(self, error=None):
        super().__init__()
        self.error, self.protocol, self.ended, self.aborted = error, None, False, 0

    def set_protocol(self, protocol):
        self.protocol = protocol

    def write_eof(self):
        if self.error is not None:
            raise self.error
        self.ended = True

    def abort(self):
        self.aborted += 1
        self.protocol.connection_lost(None)


def parted(wire):
    async def part():
        before = Before()
        return before, Farewell(before, wire, asyncio.get_running_loop())

    return asyncio.run(part())


def test_the_client_hears_that_nothing_follows_and_may_send_the_rest():
    wire = Wire()
    before, farewell = parted(wire)
    assert (wire.protocol, wire.ended) == (farewell, True)
    farewell.data_received(bytes(MOST_BYTES))
    assert (wire.aborted, before.lost) == (0, 0)
    farewell.data_received(b"x")
    assert (wire.aborted, before.lost) == (1, 1)


def test_a_client_that_has_gone_is_not_waited_for():
    wire = Wire(OSError(107, "Transport endpoint is not connected"))
    before, _ = parted(wire)
    assert (wire.aborted, before.lost) == (1, 1)
