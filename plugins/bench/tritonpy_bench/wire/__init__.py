"""How requests travel: HTTP/1.1, gRPC calls, gRPC streams, shared memory."""

from __future__ import annotations
