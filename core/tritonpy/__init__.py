"""tritonpy: an inference server where every part is a plugin. These are the names that plugins may use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tritonpy.access.restriction import ApiCategory, Restriction, check_restrictions
from tritonpy.api.authenticator import Authenticator, Principal, Verb
from tritonpy.api.backend import Backend, InstanceContext, ModelContext
from tritonpy.api.batch_policy import BatchPolicy, Pending, Run, Wait
from tritonpy.api.cache import Cache
from tritonpy.api.claim import Claim, Claimed
from tritonpy.api.command import Command
from tritonpy.api.engine import (
    BatchStatistics,
    Duration,
    Engine,
    GpuShare,
    InferStatistics,
    MemoryUsage,
    ModelGauges,
    ModelIndex,
    ModelMetadata,
    ModelStatistics,
    ResponseStatistics,
    ServerMetadata,
    SummarySnapshot,
    TensorMetadata,
)
from tritonpy.api.frontend import Frontend, FrontendContext
from tritonpy.api.load_cancellation import LoadCancellation
from tritonpy.api.named_versions import named_versions
from tritonpy.api.observer import Event, Observer
from tritonpy.api.operation import Answerer, Operation, OperationCall, OperationGroup
from tritonpy.api.options import NoOptions, Options
from tritonpy.api.rate_limiter import NoRateLimiter, RateLimiter
from tritonpy.api.repo_agent import AgentAction, AgentModel, RepoAgent
from tritonpy.api.repository import ModelChanged, ModelListing, Repository, RepositoryContext
from tritonpy.api.router import Router, RouterContext
from tritonpy.api.scheduler import UNBOUNDED, Scheduler, SchedulerContext
from tritonpy.api.sharing import Line, RequestLine, Sharing
from tritonpy.api.trace_settings import TraceChanges, TraceSettings
from tritonpy.api.trace_sink import TraceSink
from tritonpy.api.tracer import Tracer
from tritonpy.api.transport import Transport
from tritonpy.api.version import API_VERSION, SERVER_VERSION
from tritonpy.api.worker import Launcher, WorkerProcess
from tritonpy.batch_keys import BatchKey, batch_key
from tritonpy.call_threads import LOAD_CALLS, MODEL_CALLS, CallThreads
from tritonpy.clock import now_ns
from tritonpy.config.model_fit import control_inputs, dims_misfit, model_dims, set_dims, shape_text, unable_to_load
from tritonpy.config.parameters import (
    MOST_THREADS,
    parameter_bool,
    parameter_bytes,
    parameter_choice,
    parameter_int,
    parameter_threads,
)
from tritonpy.config.server.byte_size import ByteSize, parse_byte_size
from tritonpy.config.server.decode import decode_options
from tritonpy.config.server.invalid import InvalidServerConfig
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
from tritonpy.device_memory import DeviceBlock, ModelMemory
from tritonpy.devices import NobodyTells, gpu_memory
from tritonpy.errors import (
    AlreadyExists,
    Cancelled,
    Code,
    Conflict,
    DecoupledRefused,
    FailureReason,
    Internal,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    PluginError,
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
from tritonpy.gather import gather, scatter
from tritonpy.hookspecs import hookimpl
from tritonpy.incidents import incident
from tritonpy.installation import install_command
from tritonpy.listening.tls_options import TlsOptions
from tritonpy.logs import LogChanges, LogSettings
from tritonpy.nvml import Nvml, NvmlError, open_nvml
from tritonpy.private_folders import make_private_folder
from tritonpy.request_memory import ClientMemory, RequestMemory, RequestMemoryFull, Reservation
from tritonpy.runners.call_streams import CallStream, CallStreams
from tritonpy.runners.model_calls import check_model_call, refused_model_call
from tritonpy.runners.workers.model_log import ModelLog
from tritonpy.runners.workers.spawned import SpawnedProcess
from tritonpy.shown_urls import without_secrets
from tritonpy.types import (
    CPU,
    DATATYPE_OF_NUMBER,
    DATATYPES,
    DTYPES,
    ITEMSIZES,
    NO_PARAMETERS,
    Batch,
    CallbackSink,
    CudaRegion,
    DataType,
    InferRequest,
    InferResponse,
    LoopSink,
    OutputSpec,
    ParameterValue,
    RegionKind,
    RegionSlice,
    Room,
    SequenceInfo,
    Sink,
    StreamSink,
    SystemRegion,
    Tensor,
    Trace,
    TraceFamily,
    TurnSink,
    Work,
    datatype_of,
    decode_strings,
    encode_strings,
    stand_in,
    string_offsets,
)

if TYPE_CHECKING:
    from tritonpy.access.credentials import bearer_token, joined_headers
    from tritonpy.access.forwarding import HeaderForwarding, compile_pattern, keep_headers
    from tritonpy.access.gatekeeper import Gatekeeper
    from tritonpy.access.refreshed import ChangedFile, Refreshed
    from tritonpy.access.refusals import Refusals
    from tritonpy.access.restriction import Restrictions
    from tritonpy.access.rights import Rights
    from tritonpy.config.config_dict import config_to_dict
    from tritonpy.config.model_files import resolve_model_file
    from tritonpy.config.model_json import config_from_json
    from tritonpy.config.needed_steps import needed_steps
    from tritonpy.config.qualified import called_model
    from tritonpy.decompression import decompressed
    from tritonpy.listening.acceptor import Acceptor, Descriptors, Evictable
    from tritonpy.listening.claimed_port import claim_port
    from tritonpy.listening.delivery import delivered, unread
    from tritonpy.listening.http1.connection import HttpConnection
    from tritonpy.listening.http1.limits import HttpConnectionOptions
    from tritonpy.listening.http1.server import HttpServer
    from tritonpy.listening.tls_files import TlsFiles
    from tritonpy.listening.unix_socket import UnixSocket, unix_path
    from tritonpy.running import RunningServer, running_server
    from tritonpy.tracing.texts import trace_changes, trace_texts

__version__ = SERVER_VERSION

__all__ = [
    "API_VERSION",
    "CPU",
    "DATATYPES",
    "DATATYPE_OF_NUMBER",
    "DTYPES",
    "ITEMSIZES",
    "LOAD_CALLS",
    "MODEL_CALLS",
    "MOST_THREADS",
    "NO_PARAMETERS",
    "SERVER_METRICS",
    "UNBOUNDED",
    "Acceptor",
    "AgentAction",
    "AgentModel",
    "AlreadyExists",
    "Answerer",
    "ApiCategory",
    "Authenticator",
    "Backend",
    "Batch",
    "BatchKey",
    "BatchPolicy",
    "BatchStatistics",
    "ByteSize",
    "Cache",
    "CallStream",
    "CallStreams",
    "CallThreads",
    "CallbackSink",
    "Cancelled",
    "ChangedFile",
    "Claim",
    "Claimed",
    "ClientMemory",
    "Code",
    "Command",
    "Conflict",
    "CudaRegion",
    "CustomMetrics",
    "DataType",
    "DecoupledRefused",
    "Descriptors",
    "DeviceBlock",
    "Duration",
    "Engine",
    "Event",
    "Evictable",
    "FailureReason",
    "FamilySnapshot",
    "Frontend",
    "FrontendContext",
    "Gatekeeper",
    "GpuShare",
    "HeaderForwarding",
    "HistogramSnapshot",
    "HttpConnection",
    "HttpConnectionOptions",
    "HttpServer",
    "InferRequest",
    "InferResponse",
    "InferStatistics",
    "InstanceContext",
    "Internal",
    "InvalidArgument",
    "InvalidServerConfig",
    "Launcher",
    "Line",
    "LoadCancellation",
    "LogChanges",
    "LogSettings",
    "LoopSink",
    "MemoryUsage",
    "Metric",
    "MetricFamily",
    "MetricKind",
    "MetricSnapshot",
    "ModelChanged",
    "ModelContext",
    "ModelGauges",
    "ModelIndex",
    "ModelListing",
    "ModelLog",
    "ModelMemory",
    "ModelMetadata",
    "ModelMetrics",
    "ModelStatistics",
    "NoOptions",
    "NoRateLimiter",
    "NobodyTells",
    "NotFound",
    "Nvml",
    "NvmlError",
    "Observer",
    "Operation",
    "OperationCall",
    "OperationGroup",
    "Options",
    "OutputSpec",
    "ParameterValue",
    "Pending",
    "PermissionDenied",
    "PluginError",
    "Principal",
    "QueueFull",
    "QueueTimeout",
    "RateLimiter",
    "Refreshed",
    "Refusals",
    "RegionKind",
    "RegionSlice",
    "RepoAgent",
    "Repository",
    "RepositoryContext",
    "RequestLine",
    "RequestMemory",
    "RequestMemoryFull",
    "Reservation",
    "ResourceExhausted",
    "ResponseStatistics",
    "Restriction",
    "Restrictions",
    "Rights",
    "Room",
    "Router",
    "RouterContext",
    "Run",
    "RunningServer",
    "Scheduler",
    "SchedulerContext",
    "SequenceInfo",
    "ServerMetadata",
    "Sharing",
    "Sink",
    "SpawnedProcess",
    "StartupError",
    "StreamSink",
    "SummarySnapshot",
    "SystemRegion",
    "Tensor",
    "TensorMetadata",
    "TlsFiles",
    "TlsOptions",
    "Trace",
    "TraceChanges",
    "TraceFamily",
    "TraceSettings",
    "TraceSink",
    "Tracer",
    "Transport",
    "TritonError",
    "TurnSink",
    "Unauthenticated",
    "Unavailable",
    "UnixSocket",
    "Unsupported",
    "Verb",
    "Wait",
    "Work",
    "WorkerProcess",
    "__version__",
    "batch_key",
    "bearer_token",
    "called_model",
    "check_model_call",
    "check_restrictions",
    "claim_port",
    "compile_pattern",
    "config_from_json",
    "config_to_dict",
    "control_inputs",
    "datatype_of",
    "decode_options",
    "decode_strings",
    "decompressed",
    "delivered",
    "dims_misfit",
    "encode_strings",
    "error_of",
    "gather",
    "gpu_memory",
    "hookimpl",
    "incident",
    "install_command",
    "joined_headers",
    "keep_headers",
    "make_private_folder",
    "model_dims",
    "named_versions",
    "needed_steps",
    "now_ns",
    "open_nvml",
    "parameter_bool",
    "parameter_bytes",
    "parameter_choice",
    "parameter_int",
    "parameter_threads",
    "parse_byte_size",
    "refused_model_call",
    "resolve_model_file",
    "running_server",
    "scatter",
    "set_dims",
    "shape_text",
    "stand_in",
    "string_offsets",
    "trace_changes",
    "trace_texts",
    "unable_to_load",
    "unix_path",
    "unread",
    "without_secrets",
]


# They need protobuf, or the whole server, or belong to a feature that is off: who does not use them should not wait for these.
_LATER = {
    name: module
    for module, names in {
        "tritonpy.access.credentials": ("bearer_token", "joined_headers"),
        "tritonpy.access.forwarding": ("HeaderForwarding", "compile_pattern", "keep_headers"),
        "tritonpy.access.gatekeeper": ("Gatekeeper",),
        "tritonpy.access.refreshed": ("ChangedFile", "Refreshed"),
        "tritonpy.access.refusals": ("Refusals",),
        "tritonpy.access.restriction": ("Restrictions",),
        "tritonpy.access.rights": ("Rights",),
        "tritonpy.config.config_dict": ("config_to_dict",),
        "tritonpy.config.model_json": ("config_from_json",),
        "tritonpy.config.model_files": ("resolve_model_file",),
        "tritonpy.config.needed_steps": ("needed_steps",),
        "tritonpy.config.qualified": ("called_model",),
        "tritonpy.decompression": ("decompressed",),
        "tritonpy.listening.acceptor": ("Acceptor", "Descriptors", "Evictable"),
        "tritonpy.listening.claimed_port": ("claim_port",),
        "tritonpy.listening.delivery": ("delivered", "unread"),
        "tritonpy.listening.http1.connection": ("HttpConnection",),
        "tritonpy.listening.http1.limits": ("HttpConnectionOptions",),
        "tritonpy.listening.http1.server": ("HttpServer",),
        "tritonpy.listening.tls_files": ("TlsFiles",),
        "tritonpy.listening.unix_socket": ("UnixSocket", "unix_path"),
        "tritonpy.running": ("RunningServer", "running_server"),
        "tritonpy.tracing.texts": ("trace_changes", "trace_texts"),
    }.items()
    for name in names
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module 'tritonpy' has no attribute '{name}'")
