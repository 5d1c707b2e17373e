"""The messages of grpc_service.proto; their types are in the stub beside this file."""

from __future__ import annotations

from tritonpy_protos import model_config_pb2 as _model_config_pb2  # noqa: F401  its classes come first
from tritonpy_protos._pool import module_names

globals().update(module_names("grpc_service.proto", __name__))
