from __future__ import annotations

import asyncio

from tritonpy.network.http1.lingering_close import MAX_BYTES, LingeringClose


class Before(asyncio.Protocol):
    lost = 0

    def connection_lost(self, exc):
        self.lost += 1


class Wire(asyncio.Transport):
    """A transport to a client that may be disconnected."""

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


def closed(wire):
    async def start():
        before = Before()
        return before, LingeringClose(before, wire, asyncio.get_running_loop())

    return asyncio.run(start())


def test_the_client_gets_eof_and_may_send_the_rest():
    wire = Wire()
    before, closing = closed(wire)
    assert (wire.protocol, wire.ended) == (closing, True)
    closing.data_received(bytes(MAX_BYTES))
    assert (wire.aborted, before.lost) == (0, 0)
    closing.data_received(b"x")
    assert (wire.aborted, before.lost) == (1, 1)


def test_a_disconnected_client_is_not_waited_for():
    wire = Wire(OSError(107, "Transport endpoint is not connected"))
    before, _ = closed(wire)
    assert (wire.aborted, before.lost) == (1, 1)
