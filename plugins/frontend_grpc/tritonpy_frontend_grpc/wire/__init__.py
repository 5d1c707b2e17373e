"""The gRPC protocol on HTTP/2 for servers without a gRPC library.

This package is independent of the HTTP/2 server.
"""

from __future__ import annotations
