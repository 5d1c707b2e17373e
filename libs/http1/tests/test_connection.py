from __future__ import annotations

import asyncio

import pytest

from tritonpy_http1.connection import (
    MAX_BYTES,
    LingeringClose,
    framing_error,
    origin_form,
    without_upgrade,
)


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


@pytest.mark.parametrize(
    ("version", "headers", "status"),
    [
        ("1.1", [], None),
        ("1.1", [(b"host", b"a"), (b"transfer-encoding", b" Chunked ")], None),
        ("1.0", [(b"host", b"a")], None),
        ("1.1", [(b"host", b"a"), (b"host", b"a")], 400),
        ("1.1", [(b"transfer-encoding", b"identity"), (b"transfer-encoding", b"chunked")], 501),
        ("1.1", [(b"transfer-encoding", b"gzip, chunked")], 501),
        ("1.0", [(b"transfer-encoding", b"chunked")], 400),
        ("2.0", [], 505),
        ("0.9", [], 505),
    ],
)
def test_heads_are_checked(version, headers, status):
    fault = framing_error(version, headers)
    assert (fault and fault.status) == status


@pytest.mark.parametrize(
    ("url", "path"),
    [
        (b"/v2?x=http://y/", b"/v2?x=http://y/"),
        (b"http://host/v2", b"/v2"),
        (b"HTTPS://host:8/v2?a=/b", b"/v2?a=/b"),
        (b"http://host", b"/"),
        (b"http://host?a=/b", b"/?a=/b"),
        (b"*", b"*"),
        (b"ftp://host/v2", b"ftp://host/v2"),
    ],
)
def test_an_absolute_target_is_reduced_to_its_path(url, path):
    assert origin_form(url) == path


def test_a_head_is_written_again_without_its_upgrade():
    headers = [
        (b"host", b"x"),
        (b"connection", b"close, Upgrade,HTTP2-Settings"),
        (b"upgrade", b"h2c"),
        (b"a", b"b: c"),
    ]
    assert without_upgrade(b"POST", b"/v2", "1.1", headers) == (
        b"POST /v2 HTTP/1.1\r\nhost: x\r\nconnection: close,HTTP2-Settings\r\na: b: c\r\n\r\n"
    )
