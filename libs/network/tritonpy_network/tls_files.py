"""The PEM files of an encrypted port: checked at start, and read again when they change."""

from __future__ import annotations

import contextlib
import logging
import os
import ssl
from collections.abc import Callable
from typing import Any, NoReturn

from tritonpy_network.frontend_options import TlsOptions
from tritonpy_types.errors import StartupError


class TlsFiles:
    """The files of `options`. `owner` is their key in server.yaml, for error texts.

    A renewed certificate is used without a restart. While files are being replaced they may be
    inconsistent. They are then ignored, and the previous ones stay in use. Contents of files are
    never logged.
    """

    def __init__(self, options: TlsOptions, owner: str, log: logging.Logger) -> None:
        self._options = options
        self._owner = owner
        self._log = log
        self._read_state: object = None

    def context(self) -> ssl.SSLContext:
        """Return a server context for the current files.

        Raises StartupError with the file and the problem.
        """
        self._read_state = self._file_state()
        options = self._options
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.options |= ssl.OP_NO_RENEGOTIATION
        for key, path in self._paths().items():
            self._check_readable(key, path)
        try:
            context.load_cert_chain(options.certificate_file, options.key_file, _no_password)
            if options.mutual:
                context.load_verify_locations(options.client_ca_file)
                context.verify_mode = ssl.CERT_REQUIRED
        except _Encrypted:
            self._raise_error("key_file", "the key is encrypted; use a key without a password")
        except ssl.SSLError as error:
            self._raise_for_ssl_error(error)
        return context

    def renewed(self) -> ssl.SSLContext | None:
        """Return a new context if the files changed since the last read.

        Returns None if they are unchanged or invalid.
        """
        if self._file_state() == self._read_state:
            return None
        try:
            context = self.context()
        except StartupError as error:
            self._log.warning("changed TLS files are not used: %s", error)
            return None
        self._log.info("%s: read the changed TLS files", self._owner)
        return context

    def reloading_context(self, configure: Callable[[ssl.SSLContext], None]) -> ssl.SSLContext:
        """Return a server context that checks the files at every handshake.

        `configure` is called with each new context. Raises StartupError.
        """
        first = current = self.context()
        configure(first)

        def choose(connection: Any, _name: str | None, _context: ssl.SSLContext) -> None:
            nonlocal current
            renewed = self.renewed()
            if renewed is not None:
                configure(renewed)
                current = renewed
            if current is not first:
                connection.context = current

        first.sni_callback = choose  # also called for clients that send no host name
        return first

    def contents(self) -> tuple[bytes, bytes, bytes | None]:
        """Return certificate, key, and CA certificates of clients (None without mutual TLS).

        Raises OSError.
        """
        options = self._options
        roots = _read(options.client_ca_file) if options.mutual else None
        return _read(options.certificate_file), _read(options.key_file), roots

    def _paths(self) -> dict[str, str]:
        options = self._options
        named = {"certificate_file": options.certificate_file, "key_file": options.key_file}
        return {**named, "client_ca_file": options.client_ca_file} if options.mutual else named

    def _file_state(self) -> object:
        """Return a value that changes with the files. A missing file has a value, too."""
        found: list[object] = []
        for path in self._paths().values():
            try:
                there = os.stat(path)
                found.append((there.st_mtime_ns, there.st_size, there.st_ino))
            except OSError as error:
                found.append(error.errno)
        return found

    def _check_readable(self, key: str, path: str) -> None:
        try:
            _read(path)
        except OSError as error:
            self._raise_error(key, f"cannot read the file: {error.strerror}")

    def _raise_for_ssl_error(self, error: ssl.SSLError) -> NoReturn:
        options = self._options
        if error.reason == "KEY_VALUES_MISMATCH":
            self._raise_error(
                "key_file",
                f"the key does not match the first certificate of {options.certificate_file}",
            )
        for key, path in self._paths().items():
            marker = b"PRIVATE KEY-----" if key == "key_file" else b"CERTIFICATE-----"
            if marker not in _read(path):
                self._raise_error(
                    key,
                    (
                        "the file has no "
                        f"{'private key' if key == 'key_file' else 'certificate'} in PEM format"
                    ),
                )
            if key != "key_file" and not _holds_certificates(path):
                self._raise_error(key, "the certificate is damaged")
        self._raise_error(
            "key_file",
            f"OpenSSL rejects the key with its certificate: {error.reason or error.args[-1]}",
        )

    def _raise_error(self, key: str, why: str) -> NoReturn:
        raise StartupError(f"{self._owner}.{key} '{getattr(self._options, key)}': {why}")


class _Encrypted(Exception):
    """OpenSSL asked for the password of an encrypted key."""


def _no_password() -> str:
    raise _Encrypted  # otherwise OpenSSL prompts on the terminal


def _holds_certificates(path: str) -> bool:
    with contextlib.suppress(ssl.SSLError):
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(path)
        return True
    return False


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
