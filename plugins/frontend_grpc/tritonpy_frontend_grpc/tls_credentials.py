"""TLS credentials of grpcio servers."""

from __future__ import annotations

import logging
import threading
from typing import Any

import grpc

from tritonpy import TlsFiles, TlsOptions


class TlsCredentials:
    """Credentials for any number of servers.

    The files are checked at every handshake, so all servers use renewed files immediately.
    """

    def __init__(self, options: TlsOptions, log: logging.Logger) -> None:
        """Raise StartupError that names an invalid file."""
        self._mutual = options.mutual
        self._lock = threading.Lock()
        self._changes = 0
        self._files: TlsFiles | None = None
        if options.on:
            self._files = TlsFiles(options, "frontends.grpc.tls", log)
            self._files.context()  # validates the files: unlike grpc, OpenSSL reports the cause
            self._latest = _configuration(self._files)

    def make(self) -> grpc.ServerCredentials | None:
        """Return the credentials of one server, None without TLS."""
        if self._files is None:
            return None
        given, files = self._changes, self._files

        def renewed() -> Any:  # None keeps the current configuration; the library's types omit that
            nonlocal given
            with self._lock:  # each server calls this in a separate thread
                if files.renewed() is not None:
                    self._changes += 1
                    self._latest = _configuration(files)
                if given == self._changes:
                    return None
                given = self._changes
                return self._latest

        return grpc.dynamic_ssl_server_credentials(self._latest, renewed, self._mutual)


def _configuration(files: TlsFiles) -> grpc.ServerCertificateConfiguration:
    certificate, key, roots = files.contents()
    return grpc.ssl_server_certificate_configuration([(key, certificate)], roots)
