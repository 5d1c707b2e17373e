"""Transports of requests: HTTP/1.1, gRPC calls, gRPC streams, and shared memory.

Start at `http_sender` and `grpc_sender`.
"""

from __future__ import annotations
