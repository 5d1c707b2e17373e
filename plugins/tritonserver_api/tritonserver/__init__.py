"""Triton's in-process Python API, on tritonpy.

Programs that were written for NVIDIA's package of this name run unmodified. The implementation is
in `tritonpy_tritonserver_api`.
"""

from __future__ import annotations

from importlib.metadata import version as _version

from tritonpy_tritonserver_api.errors import (
    AlreadyExistsError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    TritonError,
    UnavailableError,
    UnknownError,
    UnsupportedError,
)
from tritonpy_tritonserver_api.metrics import Metric, MetricFamily
from tritonpy_tritonserver_api.model import Model
from tritonpy_tritonserver_api.names import (
    DataType,
    DLDeviceType,
    InstanceGroupKind,
    LogFormat,
    MemoryType,
    MetricFormat,
    MetricKind,
    ModelBatchFlag,
    ModelControlMode,
    ModelTxnPropertyFlag,
    RateLimitMode,
)
from tritonpy_tritonserver_api.options import ModelLoadDeviceLimit, Options, RateLimiterResource
from tritonpy_tritonserver_api.request import InferenceRequest
from tritonpy_tritonserver_api.response import InferenceResponse
from tritonpy_tritonserver_api.server import Server
from tritonpy_tritonserver_api.tensor import MemoryBuffer, Tensor
from tritonserver import _api

__all__ = [
    "AlreadyExistsError",
    "DLDeviceType",
    "DataType",
    "InferenceRequest",
    "InferenceResponse",
    "InstanceGroupKind",
    "InternalError",
    "InvalidArgumentError",
    "LogFormat",
    "MemoryBuffer",
    "MemoryType",
    "Metric",
    "MetricFamily",
    "MetricFormat",
    "MetricKind",
    "Model",
    "ModelBatchFlag",
    "ModelControlMode",
    "ModelLoadDeviceLimit",
    "ModelTxnPropertyFlag",
    "NotFoundError",
    "Options",
    "RateLimitMode",
    "RateLimiterResource",
    "Server",
    "Tensor",
    "TritonError",
    "UnavailableError",
    "UnknownError",
    "UnsupportedError",
    "_api",
]

__version__ = _version("tritonpy-tritonserver-api")
