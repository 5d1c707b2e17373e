from __future__ import annotations

import asyncio

import pytest

from tritonpy_frontend_grpc.connection_options import ConnectionOptions
from tritonpy_frontend_h2 import protocol as protocol_module
from tritonpy_frontend_h2.protocol import Http2Protocol
from tritonpy_frontend_h2.server import Http2Server

from .http2.raw_client import RecordingCalls


class Transport(asyncio.Transport):
    """A fake transport whose client reads one byte per check, or none."""

    def __init__(self, *, reads, unsent=10_000, tls=False):
        super().__init__()
        self.reads = reads
        self.unsent = unsent
        self.tls = tls
        self.written = b""
        self.ended = asyncio.Event()
        self.end = ""

    def write(self, data):
        self.written += data

    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def get_write_buffer_size(self):
        self.unsent -= min(self.reads, self.unsent)
        return self.unsent

    def can_write_eof(self):
        return not self.tls

    def write_eof(self):
        self.ended.set()

    def abort(self):
        self.end = "aborted"

    def close(self):
        self.end = "closed"


@pytest.mark.parametrize("reads", [True, False])
def test_reading_progress_counts_as_activity_for_keepalive(reads):
    async def scenario():
        options = ConnectionOptions(
            keepalive_time_ms=20, keepalive_timeout_ms=10, keepalive_permit_without_calls=True, http2_max_pings_without_data=0
        )  # fmt: skip
        transport = Transport(reads=reads)
        protocol = Http2Protocol(Http2Server(RecordingCalls(), options), asyncio.get_running_loop())
        protocol.connection_made(transport)
        await asyncio.wait([asyncio.create_task(transport.ended.wait())], timeout=0.3 if reads else 20)
        assert (b"ping_timeout" in transport.written) is not reads
        protocol.connection_lost(None)

    asyncio.run(scenario())


@pytest.mark.parametrize(("reads", "unread_bytes"), [(1, 0), (0, 20)])
@pytest.mark.parametrize("tls", [False, True])
def test_a_closing_connection_waits_for_a_reading_client_with_a_timeout(tls, reads, unread_bytes, monkeypatch):
    async def scenario():
        monkeypatch.setattr(protocol_module, "_CLOSE_CHECK_S", 0.01)
        monkeypatch.setattr(protocol_module, "_NO_PROGRESS_S", 0.05)
        transport = Transport(reads=reads, unsent=20, tls=tls)
        protocol = Http2Protocol(Http2Server(RecordingCalls(), ConnectionOptions()), asyncio.get_running_loop())
        protocol.connection_made(transport)
        began = asyncio.get_running_loop().time()
        protocol.finish("")
        while not transport.end:  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.005)
        assert asyncio.get_running_loop().time() - began >= 0.05
        assert transport.unsent == unread_bytes
        assert transport.end == ("closed" if tls and reads else "aborted")
        protocol.connection_lost(None)

    asyncio.run(scenario())
