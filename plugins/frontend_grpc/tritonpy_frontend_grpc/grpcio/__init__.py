"""The transport `grpcio`: gRPC on the server of the library grpcio.

Its entry points are `transport` and `frontend`. Only `transport` works without `grpc`, so no other
module is imported from outside of this package.
"""

from __future__ import annotations
