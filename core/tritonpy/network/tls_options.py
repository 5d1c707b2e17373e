"""The `tls` section of a frontend's options."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from tritonpy.api.options import Options


class TlsOptions(Options, frozen=True):
    """The files that encrypt a port. Without any file the port is not encrypted."""

    enabled: Annotated[bool | None, Meta(description="Encrypt the port (default: if a certificate is set)")] = None
    certificate_file: Annotated[
        str, Meta(description="The server's certificate in PEM format, followed by its chain")
    ] = ""
    key_file: Annotated[str, Meta(description="The certificate's private key in PEM format, without a password")] = ""
    client_ca_file: Annotated[str, Meta(description="CA certificates of clients in PEM format")] = ""
    mutual: Annotated[bool, Meta(description="Require client certificates; implies encryption")] = False

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
        return self.mutual or (bool(self.certificate_file or self.key_file) if self.enabled is None else self.enabled)
