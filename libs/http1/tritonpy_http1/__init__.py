"""An asyncio HTTP/1.1 server without dependencies on the rest of tritonpy.

`HttpServer` serves an ASGI application with connections of the class `HttpConnection`, which is
uvicorn's protocol with `HttpLimits`.
"""

from __future__ import annotations

from tritonpy_http1.connection import HttpConnection
from tritonpy_http1.limits import HttpLimits, LimitSettings
from tritonpy_http1.server import ConnectionAcceptor, HttpServer, MakeAcceptor

__all__ = [
    "ConnectionAcceptor",
    "HttpConnection",
    "HttpLimits",
    "HttpServer",
    "LimitSettings",
    "MakeAcceptor",
]
