"""The built-in module of Triton's stub. Some models import from it directly."""

from __future__ import annotations

from tritonpy_worker.api.errors import TritonError, TritonModelException
from tritonpy_worker.api.logger import Logger
from tritonpy_worker.api.metrics import Metric, MetricFamily, MetricKind
from tritonpy_worker.api.model_control import is_model_ready, load_model, unload_model
from tritonpy_worker.api.preferred_memory import (
    TRITONSERVER_MEMORY_CPU,
    TRITONSERVER_MEMORY_GPU,
    MemoryType,
    PreferredMemory,
)
from tritonpy_worker.api.request import InferenceRequest
from tritonpy_worker.api.response import InferenceResponse
from tritonpy_worker.api.response_iterator import ResponseIterator
from tritonpy_worker.api.response_sender import InferenceResponseSender
from tritonpy_worker.api.shared_memory import SharedMemory
from tritonpy_worker.api.tensor import Tensor
from tritonpy_worker.api.trace import InferenceTrace

COUNTER, GAUGE, HISTOGRAM = MetricKind
shared_memory = SharedMemory()

__all__ = [
    "COUNTER",
    "GAUGE",
    "HISTOGRAM",
    "TRITONSERVER_MEMORY_CPU",
    "TRITONSERVER_MEMORY_GPU",
    "InferenceRequest",
    "InferenceResponse",
    "InferenceResponseSender",
    "InferenceTrace",
    "Logger",
    "MemoryType",
    "Metric",
    "MetricFamily",
    "MetricKind",
    "PreferredMemory",
    "ResponseIterator",
    "SharedMemory",
    "Tensor",
    "TritonError",
    "TritonModelException",
    "is_model_ready",
    "load_model",
    "shared_memory",
    "unload_model",
]
