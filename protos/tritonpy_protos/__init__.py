"""The messages of the Triton inference protocol, built in a descriptor pool of their own.

`model_config_pb2` and `grpc_service_pb2` look like protoc's modules and can live beside `tritonclient.grpc` in one
interpreter, whichever is imported first. `POOL` serves reflection; `SERVICE` and `METHODS` describe the gRPC service.
"""

from __future__ import annotations

from tritonpy_protos._pool import POOL
from tritonpy_protos.service import METHODS, SERVICE, Method

__all__ = ["METHODS", "POOL", "SERVICE", "Method"]
