"""tritonpy: an inference server where every part is a plugin. These are the names that plugins may use."""

from __future__ import annotations

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
from tritonpy.clock import now_ns
from tritonpy.config.server.byte_size import ByteSize
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

__version__ = SERVER_VERSION

__all__ = [
    "API_VERSION",
    "CPU",
    "DATATYPES",
    "DATATYPE_OF_NUMBER",
    "DTYPES",
    "ITEMSIZES",
    "NO_PARAMETERS",
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
    "DataType",
    "DecoupledRefused",
    "Duration",
    "Engine",
    "Event",
    "FailureReason",
    "Frontend",
    "FrontendContext",
    "InferRequest",
    "InferResponse",
    "InferStatistics",
    "InstanceContext",
    "Internal",
    "InvalidArgument",
    "LoopSink",
    "MemoryUsage",
    "ModelContext",
    "ModelGauges",
    "ModelIndex",
    "ModelListing",
    "ModelMetadata",
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
    "Scheduler",
    "SchedulerContext",
    "SequenceInfo",
    "ServerMetadata",
    "Sink",
    "StartupError",
    "Tensor",
    "TensorMetadata",
    "TritonError",
    "Unavailable",
    "Unsupported",
    "Verb",
    "Wait",
    "__version__",
    "config_to_dict",
    "datatype_of",
    "decode_strings",
    "encode_strings",
    "error_of",
    "gather",
    "hookimpl",
    "incident",
    "now_ns",
    "scatter",
    "string_offsets",
]


def __getattr__(name: str) -> Any:
    # It needs protobuf, which a command that serves nothing should not wait for.
    if name == "config_to_dict":
        from tritonpy.config.config_dict import config_to_dict

        return config_to_dict
    raise AttributeError(f"module 'tritonpy' has no attribute '{name}'")
