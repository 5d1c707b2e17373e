"""The messages of grpc_service.proto; the stub next to this file has their types."""

from __future__ import annotations

from tritonpy_protos import model_config_pb2 as _model_config_pb2  # noqa: F401  its classes come first
from tritonpy_protos._pool import module_names

globals().update(module_names("grpc_service.proto", __name__))
