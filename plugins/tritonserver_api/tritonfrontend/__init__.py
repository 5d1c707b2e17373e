"""The frontends of Triton's in-process Python API, on tritonpy.

Programs that were written for NVIDIA's package of this name run unmodified. The implementation is
in `tritonpy_tritonserver_api.frontends`.
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
from tritonpy_tritonserver_api.frontends import KServeGrpc, KServeHttp, Metrics

__all__ = [
    "AlreadyExistsError",
    "InternalError",
    "InvalidArgumentError",
    "KServeGrpc",
    "KServeHttp",
    "Metrics",
    "NotFoundError",
    "TritonError",
    "UnavailableError",
    "UnknownError",
    "UnsupportedError",
]

__version__ = _version("tritonpy-tritonserver-api")
