"""What is asked of calls, whatever transport carries them; and the service and the doorkeeper that come of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from tritonpy import ApiCategory, ByteSize, Engine, FrontendContext, Options, Restriction, check_restrictions
from tritonpy_frontend_grpc.service import InferenceService
from tritonpy_frontend_grpc.stream import Window
from tritonpy_frontend_grpc.unpacking import LIMIT

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.access import GrpcAccess


class CallOptions(Options, frozen=True):
    """The keys of `frontends: grpc:` that concern calls."""

    infer_response_compression_level: Annotated[
        Literal["none", "low", "medium", "high"], Meta(description="compression of answers, where the client takes it")
    ] = "none"
    max_decompressed_size: Annotated[
        ByteSize, Meta(ge=1, description="largest message that a compressed one may become")
    ] = LIMIT
    max_body_bytes: Annotated[
        ByteSize, Meta(ge=0, description="largest message, 0 for any size; a larger one is RESOURCE_EXHAUSTED")
    ] = 0
    max_response_pool_size: Annotated[
        int, Meta(ge=1, description="answers of one decoupled request that may wait for a slow client")
    ] = 1024
    max_response_pool_bytes: Annotated[
        ByteSize, Meta(ge=1, description="bytes of such answers that may wait, the last of them not counted")
    ] = 2**20
    model_ready_errors: Annotated[
        bool,
        Meta(description="ModelReady of an unknown model or version is an error, as in newer Tritons, not ready=false"),
    ] = False
    restricted_apis: Annotated[
        tuple[Restriction, ...],
        Meta(description="groups of calls that need the header triton-grpc-protocol-KEY with a secret value"),
    ] = ()
    header_forward_pattern: Annotated[
        str, Meta(description="metadata whose key it matches anywhere become parameters of inference requests")
    ] = ""

    def __post_init__(self) -> None:
        """Raise ValueError for what no single option shows."""
        check_restrictions(self.restricted_apis, "protocol")
        if self.header_forward_pattern:
            from tritonpy import compile_pattern

            compile_pattern(self.header_forward_pattern)


def service_of(
    engine: Engine, options: CallOptions, context: FrontendContext, access: GrpcAccess | None
) -> InferenceService:
    """Return what answers the calls, on the running event loop."""
    window = Window(options.max_response_pool_size, options.max_response_pool_bytes)
    make = _service_class(context)
    limit, most = options.max_decompressed_size, options.max_body_bytes
    service = make(engine, window, context.log, access, limit, context.tracer, context.memory, most)
    service.model_ready_errors = options.model_ready_errors
    return service


def access_of(options: CallOptions, context: FrontendContext) -> GrpcAccess | None:
    """Return who decides which calls may be made; None where nothing restricts, forwards, keeps or authenticates."""
    gatekeeper, kept_headers = context.gatekeeper, context.kept_headers
    if not (options.restricted_apis or options.header_forward_pattern or gatekeeper or kept_headers):
        return None
    from tritonpy_frontend_grpc.access import GrpcAccess

    pattern, note = options.header_forward_pattern, _refusals(context) if options.restricted_apis else None
    return GrpcAccess(options.restricted_apis, pattern, gatekeeper, kept_headers, note)


def _service_class(context: FrontendContext) -> type[InferenceService]:
    if not any(name.startswith("TRITONSERVER_") and "DELAY" in name for name in os.environ):
        return InferenceService
    from tritonpy_frontend_grpc.delays import delayed_service

    return delayed_service(os.environ, context.log)


def _refusals(context: FrontendContext) -> Callable[[ApiCategory], None]:
    from tritonpy import Refusals

    return Refusals(context.metrics, "grpc", context.log).note
