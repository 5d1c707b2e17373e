"""The TLS options of the HTTP frontend."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from tritonpy.frontend import TlsOptions


class HttpTlsOptions(TlsOptions, frozen=True):
    """The section `tls` of `frontends: http:`."""

    minimum_version: Annotated[
        Literal["TLSv1.2", "TLSv1.3"], Meta(description="Oldest accepted TLS version")
    ] = "TLSv1.2"
