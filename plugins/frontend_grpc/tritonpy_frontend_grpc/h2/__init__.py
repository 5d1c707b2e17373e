"""The transport `h2`, the default: gRPC on the HTTP/2 server of `tritonpy_http2`.

The entry point is `frontend`. Nothing here imports `grpc`, except for the first reflection call.
"""

from __future__ import annotations
