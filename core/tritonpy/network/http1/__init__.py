"""An HTTP/1.1 server for frontends: connections with limits, and the server that accepts them.

Entry point: `HttpServer`. It uses uvicorn's protocol on the server's event loop, and imports only
the acceptor and options from the core.
"""

from __future__ import annotations
