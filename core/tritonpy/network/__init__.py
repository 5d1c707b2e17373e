"""Network code that frontends of all protocols share.

It holds the connection acceptor, TLS files, Unix domain sockets, port claims, response delivery,
and an HTTP/1.1 server (`http1`). It imports only the plugin API and options.
"""

from __future__ import annotations
