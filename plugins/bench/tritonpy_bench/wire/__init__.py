"""Transports of requests: HTTP/1.1, gRPC calls, gRPC streams, and shared memory."""

from __future__ import annotations
