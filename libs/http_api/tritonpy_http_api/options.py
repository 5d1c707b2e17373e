"""The options of the HTTP frontend."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from tritonpy.auth import Restriction, check_restrictions
from tritonpy.config import ByteSize
from tritonpy.frontend import HttpConnectionOptions, HttpTlsOptions
from tritonpy_load_reports.report import LoadReportOptions


class HttpApiOptions(HttpConnectionOptions, frozen=True):
    """The options under `frontends: http:` of server.yaml."""

    port: Annotated[int, Meta(ge=0, le=65535, description="TCP port; 0 picks a free one")] = 8000
    host: Annotated[
        str | None, Meta(description="Address to listen on instead of the server's, or unix:/path")
    ] = None
    reuse_port: Annotated[
        bool, Meta(description="Let several servers listen on the port (SO_REUSEPORT)")
    ] = False
    socket_mode: Annotated[
        str, Meta(pattern="^0?[0-7]{3}$", description="File mode of unix:/path, as for chmod")
    ] = "0660"
    tls: Annotated[
        HttpTlsOptions, Meta(description="Certificate and key that encrypt the port")
    ] = HttpTlsOptions()
    max_input_size: Annotated[
        ByteSize,
        Meta(
            gt=0,
            description=(
                "Largest JSON, JSON tensor, raw binary body and decompressed body, in bytes"
            ),
        ),
    ] = 64 * 1024 * 1024
    max_body_bytes: Annotated[
        ByteSize,
        Meta(
            ge=0,
            description=(
                "Largest body in bytes, 0 for no limit on binary tensors; "
                "larger bodies get 413 before they are read"
            ),
        ),
    ] = 0
    max_waiting_answers: Annotated[
        int,
        Meta(ge=1, description="Responses of one generate call that may wait for a slow client"),
    ] = 64
    max_waiting_bytes: Annotated[
        ByteSize,
        Meta(gt=0, description="Bytes of such responses that may wait, not counting the last one"),
    ] = 256 * 1024
    drain_idle_s: Annotated[
        float,
        Meta(
            ge=0,
            description=(
                "Seconds that a stopping server keeps a connection open for its client's next "
                "request"
            ),
        ),
    ] = 5
    generate_unknown_parameters: Annotated[
        Literal["refuse", "forward"],
        Meta(
            description=(
                "Handling of generate parameters that the model does not read; Triton forwards them"
            )
        ),
    ] = "refuse"
    load_reports: Annotated[
        LoadReportOptions, Meta(description="Load reports for load balancers (ORCA)")
    ] = LoadReportOptions()
    restricted_apis: Annotated[
        tuple[Restriction, ...],
        Meta(description="Groups of calls that require a header with a secret value"),
    ] = ()
    header_forward_pattern: Annotated[
        str,
        Meta(
            description=(
                "Headers with a matching name become parameters of inference requests; "
                "case is ignored"
            )
        ),
    ] = ""

    def __post_init__(self) -> None:
        """Raise ValueError for an invalid combination of options."""
        check_restrictions(self.restricted_apis, "api")
        if self.header_forward_pattern:
            from tritonpy.auth import compile_pattern

            compile_pattern(self.header_forward_pattern)
