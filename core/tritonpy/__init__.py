"""tritonpy: an inference server in which every part is a plugin; the names that plugins may use.

Start at `api` (what plugins implement), `types` (the data) and `server` (how a server is built).
Plugins import names from here and from the namespaces in `_NAMESPACES`.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from tritonpy.api.backend import Backend
from tritonpy.api.cache import Cache
from tritonpy.api.command import Command
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy.api.device import ModelMemory
from tritonpy.api.engine import Engine, MemoryUsage
from tritonpy.hookspecs import hookimpl
from tritonpy.version import SERVER_VERSION
from tritonpy_config.options import Options
from tritonpy_types import (
    DATATYPES,
    DTYPES,
    Batch,
    CallbackSink,
    InferRequest,
    InferResponse,
    OutputSpec,
    ParameterValue,
    SequenceInfo,
    Tensor,
    decode_strings,
    encode_strings,
)
from tritonpy_types.clock import now_ns
from tritonpy_types.errors import (
    AlreadyExists,
    Cancelled,
    Code,
    Conflict,
    DecoupledRefused,
    Internal,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    QueueFull,
    QueueTimeout,
    ResourceExhausted,
    StartupError,
    TritonError,
    Unauthenticated,
    Unavailable,
    Unsupported,
    error_of,
)

if TYPE_CHECKING:
    from tritonpy.server.embedded import RunningServer, running_server

__version__ = SERVER_VERSION

__all__ = [
    "DATATYPES",
    "DTYPES",
    "AlreadyExists",
    "Backend",
    "Batch",
    "Cache",
    "CallbackSink",
    "Cancelled",
    "Code",
    "Command",
    "Conflict",
    "DecoupledRefused",
    "Engine",
    "InferRequest",
    "InferResponse",
    "InstanceContext",
    "Internal",
    "InvalidArgument",
    "MemoryUsage",
    "ModelContext",
    "ModelMemory",
    "NotFound",
    "Options",
    "OutputSpec",
    "ParameterValue",
    "PermissionDenied",
    "QueueFull",
    "QueueTimeout",
    "ResourceExhausted",
    "RunningServer",
    "SequenceInfo",
    "StartupError",
    "Tensor",
    "TritonError",
    "Unauthenticated",
    "Unavailable",
    "Unsupported",
    "__version__",
    "decode_strings",
    "encode_strings",
    "error_of",
    "hookimpl",
    "now_ns",
    "running_server",
]


# Imported on first use: they need protobuf or the whole server, or belong to an optional feature.
_LAZY = {
    name: module
    for module, names in {"tritonpy.server.embedded": ("RunningServer", "running_server")}.items()
    for name in names
}


# Names of earlier releases and their new places. Each works for one more release, with a
# DeprecationWarning.
_RENAMED: dict[str, str] = {
    "Answerer": "tritonpy.frontend.OperationHandler",
    "Claimed": "tritonpy.frontend.ClaimedAddress",
    "DeviceBlock": "tritonpy.execution.DeviceBlock",
    "Gatekeeper": "tritonpy.auth.Authorizer",
    "GpuMemoryUnavailable": "tritonpy.execution.DeviceUnavailable",
    "Line": "tritonpy.scheduling.WaitingQueue",
    "NobodyTells": "tritonpy.execution.DeviceUnavailable",
    "Nvml": "tritonpy_device_cuda.nvml.Nvml",
    "NvmlError": "tritonpy_device_cuda.nvml.NvmlError",
    "Refreshed": "tritonpy.auth.RefreshedValue",
    "Refusals": "tritonpy.auth.RestrictionDenials",
    "RequestLine": "tritonpy.scheduling.OrderedRequestQueue",
    "Room": "tritonpy.frontend.FlowControl",
    "TurnSink": "tritonpy.frontend.LoopQueueSink",
    "Work": "tritonpy.metrics.ComputeTimes",
    "gpu_memory": "tritonpy_device_cuda.gpus.gpu_memory",
    "incident": "tritonpy.frontend.internal_error",
    "open_nvml": "tritonpy_device_cuda.nvml.open_nvml",
    "stand_in": "tritonpy.tracing.synthetic_parent",
    "without_secrets": "tritonpy.repository.redact_urls",
}


# Public modules. Names that they have were names of `tritonpy` in earlier releases, and work for
# one more release, with a DeprecationWarning.
_NAMESPACES = (
    "auth",
    "config",
    "execution",
    "frontend",
    "metrics",
    "plugins",
    "repository",
    "scheduling",
    "server",
    "tracing",
)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    if name in _NAMESPACES:
        return importlib.import_module(f"tritonpy.{name}")
    place = _RENAMED.get(name) or _moved(name)
    if place is None:
        raise AttributeError(f"module 'tritonpy' has no attribute '{name}'")
    warnings.warn(f"tritonpy.{name} is now called {place}", DeprecationWarning, stacklevel=2)
    module, _, attribute = place.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def _moved(name: str) -> str | None:
    """Return where a name of `tritonpy` is now."""
    if not name.startswith("_"):
        for namespace in _NAMESPACES:
            if name in importlib.import_module(f"tritonpy.{namespace}").__all__:
                return f"tritonpy.{namespace}.{name}"
    return None
