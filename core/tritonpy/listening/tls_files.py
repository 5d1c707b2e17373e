"""The PEM files of a port that is encrypted: checked at start, read again when they change."""

from __future__ import annotations

import contextlib
import logging
import os
import ssl
from collections.abc import Callable
from typing import Any, NoReturn

from tritonpy.errors import StartupError
from tritonpy.listening.tls_options import TlsOptions


class TlsFiles:
    """The files that `options` name; `owner` is the key of server.yaml under which they are named.

    A renewed certificate is used without a restart. Files that do not fit together while somebody is replacing them are not
    used: what was read before stays in force. Nothing of a file's content is ever logged.
    """

    def __init__(self, options: TlsOptions, owner: str, log: logging.Logger) -> None:
        self._options = options
        self._owner = owner
        self._log = log
        self._seen: object = None

    def context(self) -> ssl.SSLContext:
        """Return a server's context for what the files hold now. Raises StartupError with the file and what is wrong with it."""
        self._seen = self._state()
        options = self._options
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.options |= ssl.OP_NO_RENEGOTIATION
        for key, path in self._named().items():
            self._check_readable(key, path)
        try:
            context.load_cert_chain(options.certificate_file, options.key_file, _no_password)
            if options.mutual:
                context.load_verify_locations(options.client_ca_file)
                context.verify_mode = ssl.CERT_REQUIRED
        except _Encrypted:
            self._fail("key_file", "the key is encrypted; give one that needs no password")
        except ssl.SSLError as error:
            self._explain(error)
        return context

    def renewed(self) -> ssl.SSLContext | None:
        """Return a new context if the files changed since they were read last, and None if they did not or cannot be used."""
        if self._state() == self._seen:
            return None
        try:
            context = self.context()
        except StartupError as error:
            self._log.warning("changed TLS files are not used: %s", error)
            return None
        self._log.info("%s: read the changed TLS files", self._owner)
        return context

    def renewing_context(self, configure: Callable[[ssl.SSLContext], None]) -> ssl.SSLContext:
        """Return a server's context that looks at the files for every handshake; `configure` gets each one that is made. Raises StartupError."""
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

        first.sni_callback = choose  # called for clients that name no host too
        return first

    def contents(self) -> tuple[bytes, bytes, bytes | None]:
        """Return certificate, key and the certificates that vouch for clients, None where clients need none. Raises OSError."""
        options = self._options
        roots = _read(options.client_ca_file) if options.mutual else None
        return _read(options.certificate_file), _read(options.key_file), roots

    def _named(self) -> dict[str, str]:
        options = self._options
        named = {"certificate_file": options.certificate_file, "key_file": options.key_file}
        return {**named, "client_ca_file": options.client_ca_file} if options.mutual else named

    def _state(self) -> object:
        """Return what changes with the files; a file that is not there is a state too."""
        found: list[object] = []
        for path in self._named().values():
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
            self._fail(key, f"it cannot be read: {error.strerror}")

    def _explain(self, error: ssl.SSLError) -> NoReturn:
        options = self._options
        if error.reason == "KEY_VALUES_MISMATCH":
            self._fail("key_file", f"the key does not belong to the first certificate of {options.certificate_file}")
        for key, path in self._named().items():
            marker = b"PRIVATE KEY-----" if key == "key_file" else b"CERTIFICATE-----"
            if marker not in _read(path):
                self._fail(key, f"it holds no {'private key' if key == 'key_file' else 'certificate'} in PEM form")
            if key != "key_file" and not _holds_certificates(path):
                self._fail(key, "its certificate is damaged")
        self._fail("key_file", f"OpenSSL refuses it with its certificate: {error.reason or error.args[-1]}")

    def _fail(self, key: str, why: str) -> NoReturn:
        raise StartupError(f"{self._owner}.{key} '{getattr(self._options, key)}': {why}")


class _Encrypted(Exception):
    """A key asked for its password."""


def _no_password() -> str:
    raise _Encrypted  # without this, OpenSSL asks on the terminal and waits


def _holds_certificates(path: str) -> bool:
    with contextlib.suppress(ssl.SSLError):
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(path)
        return True
    return False


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
