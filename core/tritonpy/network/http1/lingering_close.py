"""Lingering close of a connection whose last response precedes unread request data."""

from __future__ import annotations

import asyncio

LINGER_S = 2.0
MAX_BYTES = 1024 * 1024


class LingeringClose(asyncio.Protocol):
    """Replaces `protocol` on its transport, half-closes the connection, and discards further data.

    Closing a TCP connection with unread bytes resets it, and the client may lose the response with
    the error.
    """

    def __init__(
        self, protocol: asyncio.Protocol, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._protocol = protocol
        self._transport = transport
        self._read = 0
        self._timer = loop.call_later(LINGER_S, transport.abort)
        transport.set_protocol(self)
        try:
            transport.write_eof()
        except OSError:  # the client has disconnected
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Discard data, up to a limit."""
        self._read += len(data)
        if self._read > MAX_BYTES:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify the replaced protocol."""
        self._timer.cancel()
        self._protocol.connection_lost(exc)
