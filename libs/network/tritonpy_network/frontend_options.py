"""Options that frontends share: the `tls` section, and limits of HTTP connections."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from tritonpy_config.options import Options
from tritonpy_config.server.expectation import ByteSize


class TlsOptions(Options, frozen=True):
    """The files that encrypt a port. Without any file the port is not encrypted."""

    enabled: Annotated[
        bool | None, Meta(description="Encrypt the port (default: if a certificate is set)")
    ] = None
    certificate_file: Annotated[
        str, Meta(description="The server's certificate in PEM format, followed by its chain")
    ] = ""
    key_file: Annotated[
        str, Meta(description="The certificate's private key in PEM format, without a password")
    ] = ""
    client_ca_file: Annotated[str, Meta(description="CA certificates of clients in PEM format")] = (
        ""
    )
    mutual: Annotated[bool, Meta(description="Require client certificates; implies encryption")] = (
        False
    )

    def __post_init__(self) -> None:
        """Raise ValueError if a required file is missing."""
        if not self.on:
            return
        needed = {"certificate_file": self.certificate_file, "key_file": self.key_file}
        if self.mutual:
            needed["client_ca_file"] = self.client_ca_file
        missing = [f"tls.{name}" for name, value in needed.items() if not value]
        if missing:
            raise ValueError(f"TLS needs {' and '.join(missing)}")

    @property
    def on(self) -> bool:
        """Whether the port is encrypted."""
        return self.mutual or (
            bool(self.certificate_file or self.key_file) if self.enabled is None else self.enabled
        )


class HttpTlsOptions(TlsOptions, frozen=True):
    """The section `tls` of a frontend that serves HTTP/1.1."""

    minimum_version: Annotated[
        Literal["TLSv1.2", "TLSv1.3"], Meta(description="Oldest accepted TLS version")
    ] = "TLSv1.2"


class HttpConnectionOptions(Options, frozen=True):
    """Options of a frontend that limit its connections."""

    keep_alive_s: Annotated[
        int, Meta(ge=0, description="Seconds after which an idle connection is closed")
    ] = 75
    head_timeout_s: Annotated[
        float, Meta(gt=0, description="Seconds within which the head of a request must arrive")
    ] = 60
    body_timeout_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Seconds without progress of a body, or of a client that reads a response",
        ),
    ] = 300
    max_head_size: Annotated[
        ByteSize, Meta(gt=0, description="Maximum size in bytes of request line and headers")
    ] = 64 * 1024
    max_headers: Annotated[
        int, Meta(gt=0, description="Maximum number of headers of a request")
    ] = 1000
    max_connections: Annotated[
        int,
        Meta(
            ge=0, description="Maximum number of connections, 0 for no limit; others get status 503"
        ),
    ] = 0
