"""The transport `grpcio`: gRPC on the server of the library grpcio.

Its entry points are `transport` and `frontend`. They import `grpc`, so nothing outside of this package
imports them.
"""

from __future__ import annotations
