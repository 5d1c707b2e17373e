"""What an engine offers to frontends besides inference: operations, regions, traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy.lazy_names import lazy_names

if TYPE_CHECKING:
    from tritonpy.api.engine import (
        ModelMetadata,
        Operation,
        OperationCall,
        ServerMetadata,
        TensorMetadata,
    )
    from tritonpy.api.frontend import (
        Frontend,
        FrontendContext,
        HttpMounts,
        SharedPort,
        Transport,
    )
    from tritonpy.api.frontend_host import FrontendHost, FrontendHostContext
    from tritonpy.api.operation import OperationGroup, OperationHandler
    from tritonpy.api.router import Router, RouterContext
    from tritonpy.engine.operations import Operations
    from tritonpy.logs import follow_log_settings, log_settings
    from tritonpy.plugins.manager import frontend_classes
    from tritonpy.shared_memory import Regions, hold_regions
    from tritonpy.tracing.file_sink import FileOptions, FileSink
    from tritonpy_config.server.log_settings import LogChanges, LogSettings
    from tritonpy_network.acceptor import Acceptor, Descriptors, Evictable, delivered, unread
    from tritonpy_network.call_threads import LOAD_CALLS, MODEL_CALLS
    from tritonpy_network.decompression import decompressed
    from tritonpy_network.frontend_options import (
        HttpConnectionOptions,
        HttpTlsOptions,
        TlsOptions,
    )
    from tritonpy_network.listeners import (
        BACKLOG,
        claim_address,
        http_tls_context,
        listen_on_claim,
        listen_on_port,
    )
    from tritonpy_network.port_claim import Claim, ClaimedAddress, claim_port
    from tritonpy_network.request_memory import (
        ClientMemory,
        RequestMemory,
        RequestMemoryFull,
        Reservation,
        memory_metrics,
        request_memory,
    )
    from tritonpy_network.tls_files import TlsFiles
    from tritonpy_network.unix_socket import UnixSocket, unix_path
    from tritonpy_types import (
        ITEMSIZES,
        NO_PARAMETERS,
        CudaRegion,
        FlowControl,
        LoopQueueSink,
        LoopSink,
        RegionKind,
        RegionSlice,
        Sink,
        StreamSink,
        SystemRegion,
        string_offsets,
    )
    from tritonpy_types.error_ids import internal_error

__all__ = [
    "BACKLOG",
    "ITEMSIZES",
    "LOAD_CALLS",
    "MODEL_CALLS",
    "NO_PARAMETERS",
    "Acceptor",
    "Claim",
    "ClaimedAddress",
    "ClientMemory",
    "CudaRegion",
    "Descriptors",
    "Evictable",
    "FileOptions",
    "FileSink",
    "FlowControl",
    "Frontend",
    "FrontendContext",
    "FrontendHost",
    "FrontendHostContext",
    "HttpConnectionOptions",
    "HttpMounts",
    "HttpTlsOptions",
    "LogChanges",
    "LogSettings",
    "LoopQueueSink",
    "LoopSink",
    "ModelMetadata",
    "Operation",
    "OperationCall",
    "OperationGroup",
    "OperationHandler",
    "Operations",
    "RegionKind",
    "RegionSlice",
    "Regions",
    "RequestMemory",
    "RequestMemoryFull",
    "Reservation",
    "Router",
    "RouterContext",
    "ServerMetadata",
    "SharedPort",
    "Sink",
    "StreamSink",
    "SystemRegion",
    "TensorMetadata",
    "TlsFiles",
    "TlsOptions",
    "Transport",
    "UnixSocket",
    "claim_address",
    "claim_port",
    "decompressed",
    "delivered",
    "follow_log_settings",
    "frontend_classes",
    "hold_regions",
    "http_tls_context",
    "internal_error",
    "listen_on_claim",
    "listen_on_port",
    "log_settings",
    "memory_metrics",
    "request_memory",
    "string_offsets",
    "unix_path",
    "unread",
]

__getattr__ = lazy_names(
    __name__,
    {
        "tritonpy.api.engine": (
            "ModelMetadata",
            "ServerMetadata",
            "TensorMetadata",
            "Operation",
            "OperationCall",
        ),
        "tritonpy.api.frontend": (
            "Frontend",
            "FrontendContext",
            "HttpMounts",
            "Transport",
            "SharedPort",
        ),
        "tritonpy.api.frontend_host": ("FrontendHost", "FrontendHostContext"),
        "tritonpy.api.operation": ("OperationGroup", "OperationHandler"),
        "tritonpy.api.router": ("Router", "RouterContext"),
        "tritonpy_network.call_threads": ("LOAD_CALLS", "MODEL_CALLS"),
        "tritonpy_network.decompression": ("decompressed",),
        "tritonpy.engine.operations": ("Operations",),
        "tritonpy_types.error_ids": ("internal_error",),
        "tritonpy.logs": ("follow_log_settings", "log_settings"),
        "tritonpy_config.server.log_settings": ("LogChanges", "LogSettings"),
        "tritonpy_network.acceptor": (
            "Acceptor",
            "Descriptors",
            "Evictable",
            "delivered",
            "unread",
        ),
        "tritonpy_network.port_claim": ("Claim", "ClaimedAddress", "claim_port"),
        "tritonpy_network.tls_files": ("TlsFiles",),
        "tritonpy_network.frontend_options": (
            "HttpConnectionOptions",
            "HttpTlsOptions",
            "TlsOptions",
        ),
        "tritonpy_network.listeners": (
            "BACKLOG",
            "claim_address",
            "http_tls_context",
            "listen_on_claim",
            "listen_on_port",
        ),
        "tritonpy_network.unix_socket": ("UnixSocket", "unix_path"),
        "tritonpy.plugins.manager": ("frontend_classes",),
        "tritonpy_network.request_memory": (
            "ClientMemory",
            "RequestMemory",
            "RequestMemoryFull",
            "Reservation",
            "memory_metrics",
            "request_memory",
        ),
        "tritonpy.shared_memory": ("Regions", "hold_regions"),
        "tritonpy.tracing.file_sink": ("FileOptions", "FileSink"),
        "tritonpy_types": (
            "ITEMSIZES",
            "NO_PARAMETERS",
            "CudaRegion",
            "FlowControl",
            "LoopQueueSink",
            "LoopSink",
            "RegionKind",
            "RegionSlice",
            "Sink",
            "StreamSink",
            "SystemRegion",
            "string_offsets",
        ),
    },
)
