"""gRPC's mapping on HTTP/2 for a server that has none of its own: the same service as on grpc.aio, on the events of ASGI."""

from __future__ import annotations
