"""The messages of the Triton inference protocol, built in a separate descriptor pool.

`model_config_pb2` and `grpc_service_pb2` look like protoc's modules and work next to
`tritonclient.grpc` in one interpreter, in either import order. `POOL` serves reflection; `SERVICE`
and `METHODS` describe the gRPC service.
"""

from __future__ import annotations

from tritonpy_protos._pool import POOL
from tritonpy_protos.service import METHODS, SERVICE, Method

__all__ = ["METHODS", "POOL", "SERVICE", "Method"]
