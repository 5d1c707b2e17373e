"""Options of calls, independent of the transport, and the objects built from them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from tritonpy import Engine, Options
from tritonpy.auth import ApiCategory, Restriction, check_restrictions
from tritonpy.config import ByteSize
from tritonpy.frontend import FrontendContext
from tritonpy_frontend_grpc.decompression import LIMIT
from tritonpy_frontend_grpc.service import InferenceService
from tritonpy_frontend_grpc.stream import ResponseWindow
from tritonpy_load_reports.report import LoadReportOptions

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.access import GrpcAccess


class GrpcCallOptions(Options, frozen=True):
    """The keys of `frontends: grpc:` that concern calls."""

    infer_response_compression_level: Annotated[
        Literal["none", "low", "medium", "high"],
        Meta(description="compression of responses, if the client accepts it"),
    ] = "none"
    max_decompressed_size: Annotated[
        ByteSize, Meta(ge=1, description="largest message after decompression, in bytes")
    ] = LIMIT
    max_body_bytes: Annotated[
        ByteSize,
        Meta(
            ge=0,
            description=(
                "largest message in bytes, 0 for any size; larger ones get RESOURCE_EXHAUSTED"
            ),
        ),
    ] = 0
    max_response_pool_size: Annotated[
        int,
        Meta(
            ge=1, description="responses of one decoupled request that may wait for a slow client"
        ),
    ] = 1024
    max_response_pool_bytes: Annotated[
        ByteSize,
        Meta(ge=1, description="bytes of such responses that may wait, not counting the last one"),
    ] = 2**20
    model_ready_errors: Annotated[
        bool,
        Meta(
            description=(
                "ModelReady fails for an unknown model or version, as in newer Tritons, "
                "instead of ready=false"
            )
        ),
    ] = False
    load_reports: Annotated[
        LoadReportOptions, Meta(description="load reports for load balancers (ORCA)")
    ] = LoadReportOptions()
    restricted_apis: Annotated[
        tuple[Restriction, ...],
        Meta(
            description=(
                "groups of calls that require the header triton-grpc-protocol-KEY with a secret "
                "value"
            )
        ),
    ] = ()
    header_forward_pattern: Annotated[
        str,
        Meta(description="metadata with a matching key become parameters of inference requests"),
    ] = ""

    def __post_init__(self) -> None:
        """Raise ValueError for an invalid combination of options."""
        check_restrictions(self.restricted_apis, "protocol")
        if self.header_forward_pattern:
            from tritonpy.auth import compile_pattern

            compile_pattern(self.header_forward_pattern)


def make_service(
    engine: Engine, options: GrpcCallOptions, context: FrontendContext, access: GrpcAccess | None
) -> InferenceService:
    """Return the service that handles the calls on the running event loop."""
    window = ResponseWindow(options.max_response_pool_size, options.max_response_pool_bytes)
    make = _service_class(context)
    limit, most = options.max_decompressed_size, options.max_body_bytes
    service = make(engine, window, context.log, access, limit, context.tracer, context.memory, most)
    service.model_ready_errors = options.model_ready_errors
    if options.load_reports.always:
        from tritonpy_frontend_grpc.load_stream import LoadStream
        from tritonpy_load_reports import LoadReporter

        reporter = LoadReporter(engine, context.log, service.set_load)
        service.report_load(reporter.note_response, LoadStream(reporter))
    return service


def make_access(options: GrpcCallOptions, context: FrontendContext) -> GrpcAccess | None:
    """Return the access checks; None if nothing restricts, forwards, keeps or authenticates."""
    authorizer, kept_headers = context.authorizer, context.kept_headers
    if not (
        options.restricted_apis or options.header_forward_pattern or authorizer or kept_headers
    ):
        return None
    from tritonpy_frontend_grpc.access import GrpcAccess

    pattern, note = (
        options.header_forward_pattern,
        _refusals(context) if options.restricted_apis else None,
    )
    return GrpcAccess(options.restricted_apis, pattern, authorizer, kept_headers, note)


def _service_class(context: FrontendContext) -> type[InferenceService]:
    if not any(name.startswith("TRITONSERVER_") and "DELAY" in name for name in os.environ):
        return InferenceService
    from tritonpy_frontend_grpc.delays import delayed_service

    return delayed_service(os.environ, context.log)


def _refusals(context: FrontendContext) -> Callable[[ApiCategory], None]:
    from tritonpy.auth import RestrictionDenials

    return RestrictionDenials(context.metrics, "grpc", context.log).note
