"""The classes of servers."""

from __future__ import annotations

from tritonpy_tritonserver_api.metrics import Metric, MetricFamily
from tritonpy_tritonserver_api.names import (
    LogFormat,
    MetricFormat,
    MetricKind,
    ModelControlMode,
    RateLimitMode,
)
from tritonpy_tritonserver_api.options import Options, RateLimiterResource
from tritonpy_tritonserver_api.server import ModelDictionary, Server

__all__ = [
    "LogFormat",
    "Metric",
    "MetricFamily",
    "MetricFormat",
    "MetricKind",
    "ModelControlMode",
    "ModelDictionary",
    "Options",
    "RateLimitMode",
    "RateLimiterResource",
    "Server",
]
