"""An asyncio HTTP/2 server without dependencies on the rest of tritonpy.

`Http2Server` makes the protocols of connections; an `Http2Calls` starts the call of each stream.
`connection` and what it imports are independent of the network: bytes in, calls and bytes out.
"""

from __future__ import annotations

from tritonpy_http2.abuse_limits import PingRules
from tritonpy_http2.calls import (
    IGNORED_BODY,
    NO_TRAILERS,
    UNCOUNTED,
    ClientReservation,
    Headers,
    Http2Calls,
    Http2CallStream,
    MemoryAccount,
    Receiver,
)
from tritonpy_http2.encode import encode
from tritonpy_http2.limits import Http2Limits
from tritonpy_http2.server import Http2Protocol, Http2Server
from tritonpy_http2.timeouts import TimeoutSettings

__all__ = [
    "IGNORED_BODY",
    "NO_TRAILERS",
    "UNCOUNTED",
    "ClientReservation",
    "Headers",
    "Http2CallStream",
    "Http2Calls",
    "Http2Limits",
    "Http2Protocol",
    "Http2Server",
    "MemoryAccount",
    "PingRules",
    "Receiver",
    "TimeoutSettings",
    "encode",
]
