"""The end of a connection whose last answer comes before all of its requests were read."""

from __future__ import annotations

import asyncio

LINGER_S = 2.0
MOST_BYTES = 1024 * 1024


class LingeringClose(asyncio.Protocol):
    """Replaces `protocol` on its transport, ends our side of the connection, and discards what the client still sends.

    Closing with unread bytes resets a TCP connection, and then the client may lose the answer that says why.
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
        except OSError:  # the client has gone: there is nothing to wait for
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Drop what comes, up to a bound."""
        self._read += len(data)
        if self._read > MOST_BYTES:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the protocol that was here before."""
        self._timer.cancel()
        self._protocol.connection_lost(exc)
