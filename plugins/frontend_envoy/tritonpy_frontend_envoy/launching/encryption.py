"""TLS: Envoy reads the same files, and reads them again when we tell it that they changed."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import msgspec

from tritonpy import TlsFiles
from tritonpy_frontend_envoy.handover import TlsWatch
from tritonpy_frontend_envoy.launching.endpoint import Endpoint
from tritonpy_frontend_envoy.launching.types import typed

LOG = logging.getLogger("tritonpy.envoy")
_VERSIONS = {"TLSv1.2": "TLSv1_2", "TLSv1.3": "TLSv1_3"}
CERTIFICATE, CLIENTS = "certificate", "clients"


class Encryption:
    """The certificates of one endpoint, as secrets that Envoy watches. Raises StartupError with the file that is wrong."""

    def __init__(self, endpoint: Endpoint, folder: Path) -> None:
        self._options = endpoint.tls
        self._owner = f"{endpoint.owner}.tls"
        TlsFiles(self._options, self._owner, LOG).context()  # OpenSSL says what is wrong with a file
        self._folder = folder / f"tls-{endpoint.name}"
        self._folder.mkdir(mode=0o700)
        self._write_secrets()

    @property
    def watch(self) -> TlsWatch:
        """What somebody must look at, so that renewed files are used."""
        return TlsWatch(self._owner, str(self._folder), msgspec.to_builtins(self._options))

    def stream_socket(self) -> dict[str, Any]:
        """Return the configuration of TLS over TCP."""
        context = {**self._context(), "common_tls_context": {**self._common(), "alpn_protocols": ["h2", "http/1.1"]}}
        return {"name": "tls", "typed_config": typed("transport_sockets.tls.v3.DownstreamTlsContext", **context)}

    def datagram_socket(self) -> dict[str, Any]:
        """Return the configuration of QUIC."""
        context = {**self._context(), "common_tls_context": self._common(quic=True)}
        quic = typed("transport_sockets.quic.v3.QuicDownstreamTransport", downstream_tls_context=context)
        return {"name": "quic", "typed_config": quic}

    def _context(self) -> dict[str, Any]:
        return {"require_client_certificate": self._options.mutual}

    def _common(self, *, quic: bool = False) -> dict[str, Any]:
        common: dict[str, Any] = {"tls_certificate_sds_secret_configs": [self._source(CERTIFICATE)]}
        if self._options.mutual:
            common["validation_context_sds_secret_config"] = self._source(CLIENTS)
        if not quic:  # which is TLS 1.3 by itself
            oldest = _VERSIONS[getattr(self._options, "minimum_version", "TLSv1.2")]
            common["tls_params"] = {"tls_minimum_protocol_version": oldest, "tls_maximum_protocol_version": "TLSv1_3"}
        return common

    def _source(self, name: str) -> dict[str, Any]:
        watched = {"path": str(self._folder / f"{name}.json")}
        return {"name": name, "sds_config": {"resource_api_version": "V3", "path_config_source": watched}}

    def _write_secrets(self) -> None:
        options, folder = self._options, {"path": str(self._folder)}
        certificate = {
            "certificate_chain": {"filename": str(Path(options.certificate_file).absolute())},
            "private_key": {"filename": str(Path(options.key_file).absolute())},
            "watched_directory": folder,
        }
        self._write(CERTIFICATE, tls_certificate=certificate)
        if options.mutual:
            roots = {"filename": str(Path(options.client_ca_file).absolute())}
            self._write(CLIENTS, validation_context={"trusted_ca": roots, "watched_directory": folder})

    def _write(self, name: str, **secret: Any) -> None:
        resource = typed("transport_sockets.tls.v3.Secret", name=name, **secret)
        (self._folder / f"{name}.json").write_text(json.dumps({"resources": [resource]}))
