"""gRPC's mapping on HTTP/2 for servers that have none of their own: what a call says and hears, whatever carries its bytes."""

from __future__ import annotations
