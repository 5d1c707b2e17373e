"""Network code that frontends of all protocols share.

It holds the connection acceptor, TLS files, Unix domain sockets, port claims, and shared options.
It imports only the plugin API and options.
"""

from __future__ import annotations
