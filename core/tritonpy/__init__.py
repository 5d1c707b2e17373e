"""tritonpy: an inference server in which every part is a plugin; the names that plugins may use."""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from tritonpy.access.restriction import ApiCategory, Restriction, check_restrictions
from tritonpy.api.authenticator import Authenticator, Principal, Verb
from tritonpy.api.backend import Backend, InstanceContext, ModelContext
from tritonpy.api.batch_policy import BatchPolicy, Pending, Run, Wait
from tritonpy.api.cache import Cache
from tritonpy.api.command import Command
from tritonpy.api.device import Device, ModelMemory
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
from tritonpy.api.frontend import Claim, ClaimedAddress, Frontend, FrontendContext, Transport
from tritonpy.api.frontend_host import FrontendHost, FrontendHostContext
from tritonpy.api.load_cancellation import LoadCancellation
from tritonpy.api.observer import Event, Observer
from tritonpy.api.operation import Operation, OperationCall, OperationGroup, OperationHandler
from tritonpy.api.options import API_VERSION, SERVER_VERSION, NoOptions, Options
from tritonpy.api.rate_limiter import NoRateLimiter, RateLimiter
from tritonpy.api.repo_agent import AgentAction, AgentModel, RepoAgent
from tritonpy.api.repository import ModelChanged, ModelListing, Repository, RepositoryContext, named_versions
from tritonpy.api.router import Router, RouterContext
from tritonpy.api.scheduler import UNBOUNDED, Scheduler, SchedulerContext
from tritonpy.api.sharing import OrderedRequestQueue, Sharing, WaitingQueue
from tritonpy.api.trace_sink import TraceChanges, Tracer, TraceSettings, TraceSink
from tritonpy.api.worker import Launcher, SpawnedProcess, WorkerProcess
from tritonpy.batching.batch_keys import BatchKey, batch_key
from tritonpy.batching.gather import gather, scatter
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
from tritonpy.config.server.expectation import ByteSize, parse_byte_size
from tritonpy.config.server.invalid_server_config import InvalidServerConfig
from tritonpy.config.server.option_decoder import decode_options
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
from tritonpy.error_ids import internal_error
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
from tritonpy.hookspecs import hookimpl
from tritonpy.installation import install_command
from tritonpy.logs import LogChanges, LogSettings
from tritonpy.model_log import ModelLog
from tritonpy.network.tls_options import TlsOptions
from tritonpy.private_folders import make_private_folder
from tritonpy.redacted_urls import redact_urls
from tritonpy.request_memory import ClientMemory, RequestMemory, RequestMemoryFull, Reservation
from tritonpy.runners.call_streams import CallStream, CallStreams
from tritonpy.types import (
    CPU,
    DATATYPE_OF_NUMBER,
    DATATYPES,
    DTYPES,
    ITEMSIZES,
    NO_PARAMETERS,
    Batch,
    CallbackSink,
    ComputeTimes,
    CudaRegion,
    DataType,
    FlowControl,
    InferRequest,
    InferResponse,
    LoopQueueSink,
    LoopSink,
    OutputSpec,
    ParameterValue,
    RegionKind,
    RegionSlice,
    SequenceInfo,
    Sink,
    StreamSink,
    SystemRegion,
    Tensor,
    Trace,
    TraceFamily,
    datatype_of,
    decode_strings,
    encode_strings,
    string_offsets,
    synthetic_parent,
)

if TYPE_CHECKING:
    from tritonpy.access.authorizer import Authorizer, Rights, bearer_token, joined_headers
    from tritonpy.access.header_forwarding import HeaderForwarding, compile_pattern, keep_headers
    from tritonpy.access.refreshed_value import ChangedFile, RefreshedValue
    from tritonpy.access.restriction import RestrictionDenials, Restrictions
    from tritonpy.config.config_dict import config_to_dict
    from tritonpy.config.model_files import resolve_model_file
    from tritonpy.config.model_fit import called_model, needed_steps
    from tritonpy.config.model_json import config_from_json
    from tritonpy.decompression import decompressed
    from tritonpy.embedded_server import RunningServer, running_server
    from tritonpy.network.acceptor import Acceptor, Descriptors, Evictable
    from tritonpy.network.delivery import delivered, unread
    from tritonpy.network.http1.connection import HttpConnection
    from tritonpy.network.http1.limits import HttpConnectionOptions
    from tritonpy.network.http1.server import HttpServer
    from tritonpy.network.port_claim import claim_port
    from tritonpy.network.tls_files import TlsFiles
    from tritonpy.network.unix_socket import UnixSocket, unix_path
    from tritonpy.repository.residency import ResidencyContext, ResidencyPolicy
    from tritonpy.runners.call_graph import check_model_call, refused_model_call
    from tritonpy.runners.runner import RunnerFactory
    from tritonpy.tracing.protocol_settings import trace_changes, trace_texts

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
    "ApiCategory",
    "Authenticator",
    "Authorizer",
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
    "ClaimedAddress",
    "ClientMemory",
    "Code",
    "Command",
    "ComputeTimes",
    "Conflict",
    "CudaRegion",
    "CustomMetrics",
    "DataType",
    "DecoupledRefused",
    "Descriptors",
    "Device",
    "Duration",
    "Engine",
    "Event",
    "Evictable",
    "FailureReason",
    "FamilySnapshot",
    "FlowControl",
    "Frontend",
    "FrontendContext",
    "FrontendHost",
    "FrontendHostContext",
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
    "LoadCancellation",
    "LogChanges",
    "LogSettings",
    "LoopQueueSink",
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
    "NotFound",
    "Observer",
    "Operation",
    "OperationCall",
    "OperationGroup",
    "OperationHandler",
    "Options",
    "OrderedRequestQueue",
    "OutputSpec",
    "ParameterValue",
    "Pending",
    "PermissionDenied",
    "PluginError",
    "Principal",
    "QueueFull",
    "QueueTimeout",
    "RateLimiter",
    "RefreshedValue",
    "RegionKind",
    "RegionSlice",
    "RepoAgent",
    "Repository",
    "RepositoryContext",
    "RequestMemory",
    "RequestMemoryFull",
    "Reservation",
    "ResidencyContext",
    "ResidencyPolicy",
    "ResourceExhausted",
    "ResponseStatistics",
    "Restriction",
    "RestrictionDenials",
    "Restrictions",
    "Rights",
    "Router",
    "RouterContext",
    "Run",
    "RunnerFactory",
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
    "Unauthenticated",
    "Unavailable",
    "UnixSocket",
    "Unsupported",
    "Verb",
    "Wait",
    "WaitingQueue",
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
    "hookimpl",
    "install_command",
    "internal_error",
    "joined_headers",
    "keep_headers",
    "make_private_folder",
    "model_dims",
    "named_versions",
    "needed_steps",
    "now_ns",
    "parameter_bool",
    "parameter_bytes",
    "parameter_choice",
    "parameter_int",
    "parameter_threads",
    "parse_byte_size",
    "redact_urls",
    "refused_model_call",
    "resolve_model_file",
    "running_server",
    "scatter",
    "set_dims",
    "shape_text",
    "string_offsets",
    "synthetic_parent",
    "trace_changes",
    "trace_texts",
    "unable_to_load",
    "unix_path",
    "unread",
]


# Imported on first use: they need protobuf or the whole server, or belong to an optional feature.
_LAZY = {
    name: module
    for module, names in {
        "tritonpy.access.header_forwarding": ("HeaderForwarding", "compile_pattern", "keep_headers"),
        "tritonpy.access.authorizer": ("Authorizer", "Rights", "bearer_token", "joined_headers"),
        "tritonpy.access.refreshed_value": ("ChangedFile", "RefreshedValue"),
        "tritonpy.access.restriction": ("RestrictionDenials", "Restrictions"),
        "tritonpy.config.config_dict": ("config_to_dict",),
        "tritonpy.config.model_json": ("config_from_json",),
        "tritonpy.config.model_files": ("resolve_model_file",),
        "tritonpy.config.model_fit": ("called_model", "needed_steps"),
        "tritonpy.decompression": ("decompressed",),
        "tritonpy.network.acceptor": ("Acceptor", "Descriptors", "Evictable"),
        "tritonpy.network.port_claim": ("claim_port",),
        "tritonpy.network.delivery": ("delivered", "unread"),
        "tritonpy.network.http1.connection": ("HttpConnection",),
        "tritonpy.network.http1.limits": ("HttpConnectionOptions",),
        "tritonpy.network.http1.server": ("HttpServer",),
        "tritonpy.network.tls_files": ("TlsFiles",),
        "tritonpy.network.unix_socket": ("UnixSocket", "unix_path"),
        "tritonpy.repository.residency": ("ResidencyContext", "ResidencyPolicy"),
        "tritonpy.runners.call_graph": ("check_model_call", "refused_model_call"),
        "tritonpy.runners.runner": ("RunnerFactory",),
        "tritonpy.embedded_server": ("RunningServer", "running_server"),
        "tritonpy.tracing.protocol_settings": ("trace_changes", "trace_texts"),
    }.items()
    for name in names
}


# Names of earlier releases. Each works for one more release, with a DeprecationWarning.
_RENAMED: dict[str, str] = {
    "Answerer": "OperationHandler",
    "Claimed": "ClaimedAddress",
    "Gatekeeper": "Authorizer",
    "Line": "WaitingQueue",
    "Refreshed": "RefreshedValue",
    "Refusals": "RestrictionDenials",
    "RequestLine": "OrderedRequestQueue",
    "Room": "FlowControl",
    "TurnSink": "LoopQueueSink",
    "Work": "ComputeTimes",
    "incident": "internal_error",
    "stand_in": "synthetic_parent",
    "without_secrets": "redact_urls",
}


# Names of earlier releases that are in another module now, likewise for one more release.
_MOVED: dict[str, str] = {
    "DeviceBlock": "tritonpy.execution.DeviceBlock",
    "GpuMemoryUnavailable": "tritonpy.execution.DeviceUnavailable",
    "NobodyTells": "tritonpy.execution.DeviceUnavailable",
    "Nvml": "tritonpy_device_cuda.nvml.Nvml",
    "NvmlError": "tritonpy_device_cuda.nvml.NvmlError",
    "gpu_memory": "tritonpy_device_cuda.gpus.gpu_memory",
    "open_nvml": "tritonpy_device_cuda.nvml.open_nvml",
}


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        warnings.warn(f"tritonpy.{name} is now called tritonpy.{_RENAMED[name]}", DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module("tritonpy"), _RENAMED[name])
    if name in _MOVED:
        module, _, attribute = _MOVED[name].rpartition(".")
        warnings.warn(f"tritonpy.{name} is now called {_MOVED[name]}", DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(module), attribute)
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'tritonpy' has no attribute '{name}'")
