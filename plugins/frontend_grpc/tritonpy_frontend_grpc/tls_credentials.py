"""What encrypts the port on grpcio."""

from __future__ import annotations

import logging
import threading
from typing import Any

import grpc

from tritonpy import TlsFiles, TlsOptions


class TlsCredentials:
    """Credentials for any number of servers. The files are looked at for every handshake: new ones are used by all servers from then on."""

    def __init__(self, options: TlsOptions, log: logging.Logger) -> None:
        """Raises StartupError with the file that is wrong."""
        self._mutual = options.mutual
        self._looking = threading.Lock()
        self._changes = 0
        self._files: TlsFiles | None = None
        if options.on:
            self._files = TlsFiles(options, "frontends.grpc.tls", log)
            self._files.context()  # OpenSSL says what is wrong with a file, grpc does not
            self._latest = _configuration(self._files)

    def make(self) -> grpc.ServerCredentials | None:
        """Return the credentials of one server, None where nothing is to be encrypted."""
        if self._files is None:
            return None
        given, files = self._changes, self._files

        def renewed() -> Any:  # None keeps what is in force, which the library's types do not say
            nonlocal given
            with self._looking:  # each server asks in a thread of its own
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
