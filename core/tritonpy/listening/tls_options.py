"""The `tls` section of a frontend's options."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from tritonpy.api.options import Options


class TlsOptions(Options, frozen=True):
    """Which files encrypt a port. Without any of them it is not encrypted."""

    enabled: Annotated[bool | None, Meta(description="Encrypt; if not given: where a certificate is named")] = None
    certificate_file: Annotated[str, Meta(description="The server's certificate in PEM form, then its chain")] = ""
    key_file: Annotated[str, Meta(description="The certificate's private key in PEM form, not encrypted")] = ""
    client_ca_file: Annotated[str, Meta(description="Certificates in PEM form that vouch for clients")] = ""
    mutual: Annotated[bool, Meta(description="Refuse clients without a certificate; encrypts too")] = False

    def __post_init__(self) -> None:
        """Raise ValueError where something is encrypted with half of what that needs."""
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
