"""tritonpy: an inference server where every part is a plugin. These are the names that plugins may use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tritonpy.api.authenticator import Authenticator, Principal, Verb
from tritonpy.api.backend import Backend, InstanceContext, ModelContext
from tritonpy.api.batch_policy import BatchPolicy, Pending, Run, Wait
from tritonpy.api.cache import Cache
from tritonpy.api.command import Command
from tritonpy.api.engine import (
    BatchStatistics,
    Duration,
    Engine,
    InferStatistics,
    MemoryUsage,
    ModelGauges,
    ModelIndex,
    ModelMetadata,
    ModelStatistics,
    ResponseStatistics,
    ServerMetadata,
    TensorMetadata,
)
from tritonpy.api.frontend import Frontend, FrontendContext
from tritonpy.api.observer import Event, Observer
from tritonpy.api.options import NoOptions, Options
from tritonpy.api.rate_limiter import NoRateLimiter, RateLimiter
from tritonpy.api.repo_agent import AgentAction, AgentModel, RepoAgent
from tritonpy.api.repository import ModelListing, Repository, RepositoryContext
from tritonpy.api.scheduler import UNBOUNDED, Scheduler, SchedulerContext
from tritonpy.api.version import API_VERSION, SERVER_VERSION
from tritonpy.api.worker import Launcher, WorkerProcess
from tritonpy.clock import now_ns
from tritonpy.config.server.byte_size import ByteSize, parse_byte_size
from tritonpy.custom_metrics import (
    SERVER_METRICS,
    CustomMetrics,
    FamilySnapshot,
    HistogramSnapshot,
    Metric,
    MetricFamily,
    MetricKind,
    MetricSnapshot,
    ModelMetrics,
)
from tritonpy.errors import (
    AlreadyExists,
    Cancelled,
    Code,
    DecoupledRefused,
    FailureReason,
    Internal,
    InvalidArgument,
    NotFound,
    PluginError,
    QueueFull,
    QueueTimeout,
    StartupError,
    TritonError,
    Unavailable,
    Unsupported,
    error_of,
)
from tritonpy.gather import gather, scatter
from tritonpy.hookspecs import hookimpl
from tritonpy.incidents import incident
from tritonpy.runners.model_calls import check_model_call, refused_model_call
from tritonpy.runners.workers.model_log import ModelLog
from tritonpy.runners.workers.spawned import SpawnedProcess
from tritonpy.types import (
    CPU,
    DATATYPE_OF_NUMBER,
    DATATYPES,
    DTYPES,
    ITEMSIZES,
    NO_PARAMETERS,
    Batch,
    CallbackSink,
    DataType,
    InferRequest,
    InferResponse,
    LoopSink,
    OutputSpec,
    ParameterValue,
    SequenceInfo,
    Sink,
    Tensor,
    datatype_of,
    decode_strings,
    encode_strings,
    string_offsets,
)

if TYPE_CHECKING:
    from tritonpy.config.config_dict import config_to_dict
    from tritonpy.config.model_json import config_from_json
    from tritonpy.running import RunningServer, running_server

__version__ = SERVER_VERSION

__all__ = [
    "API_VERSION",
    "CPU",
    "DATATYPES",
    "DATATYPE_OF_NUMBER",
    "DTYPES",
    "ITEMSIZES",
    "NO_PARAMETERS",
    "SERVER_METRICS",
    "UNBOUNDED",
    "AgentAction",
    "AgentModel",
    "AlreadyExists",
    "Authenticator",
    "Backend",
    "Batch",
    "BatchPolicy",
    "BatchStatistics",
    "ByteSize",
    "Cache",
    "CallbackSink",
    "Cancelled",
    "Code",
    "Command",
    "CustomMetrics",
    "DataType",
    "DecoupledRefused",
    "Duration",
    "Engine",
    "Event",
    "FailureReason",
    "FamilySnapshot",
    "Frontend",
    "FrontendContext",
    "HistogramSnapshot",
    "InferRequest",
    "InferResponse",
    "InferStatistics",
    "InstanceContext",
    "Internal",
    "InvalidArgument",
    "Launcher",
    "LoopSink",
    "MemoryUsage",
    "Metric",
    "MetricFamily",
    "MetricKind",
    "MetricSnapshot",
    "ModelContext",
    "ModelGauges",
    "ModelIndex",
    "ModelListing",
    "ModelLog",
    "ModelMetadata",
    "ModelMetrics",
    "ModelStatistics",
    "NoOptions",
    "NoRateLimiter",
    "NotFound",
    "Observer",
    "Options",
    "OutputSpec",
    "ParameterValue",
    "Pending",
    "PluginError",
    "Principal",
    "QueueFull",
    "QueueTimeout",
    "RateLimiter",
    "RepoAgent",
    "Repository",
    "RepositoryContext",
    "ResponseStatistics",
    "Run",
    "RunningServer",
    "Scheduler",
    "SchedulerContext",
    "SequenceInfo",
    "ServerMetadata",
    "Sink",
    "SpawnedProcess",
    "StartupError",
    "Tensor",
    "TensorMetadata",
    "TritonError",
    "Unavailable",
    "Unsupported",
    "Verb",
    "Wait",
    "WorkerProcess",
    "__version__",
    "check_model_call",
    "config_from_json",
    "config_to_dict",
    "datatype_of",
    "decode_strings",
    "encode_strings",
    "error_of",
    "gather",
    "hookimpl",
    "incident",
    "now_ns",
    "parse_byte_size",
    "refused_model_call",
    "running_server",
    "scatter",
    "string_offsets",
]


# They need protobuf, or the whole server: a command that serves nothing should not wait for these.
_LATER = {
    "RunningServer": "tritonpy.running",
    "config_from_json": "tritonpy.config.model_json",
    "config_to_dict": "tritonpy.config.config_dict",
    "running_server": "tritonpy.running",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module 'tritonpy' has no attribute '{name}'")
