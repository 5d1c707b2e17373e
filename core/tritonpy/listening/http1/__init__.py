"""HTTP/1.1 for every frontend that speaks it: connections with limits, and the server that accepts them.

Entry point: `HttpServer`. It runs uvicorn's protocol on the server's event loop. It imports nothing of the core but the acceptor and options.
"""

from __future__ import annotations
