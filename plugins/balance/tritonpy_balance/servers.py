"""What is known of the servers: which are ready, and which models each has ready."""

from __future__ import annotations

import http.client
import json
import logging
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from tritonpy_balance.options import BalanceOptions, InvalidBackend, ServerAddress, parse_backend

TIMEOUT_S = 2.0
_POLLERS = 16
_CONFIG_AGE_S = 30.0  # a model may be loaded again with another configuration
_LOG = logging.getLogger("tritonpy.balance")


class ServerStatus(msgspec.Struct, frozen=True):
    """One server: whether it is ready, its ready models, and which of them serve sequences.

    `models` is None if the server does not list them: then it is taken to have every model.
    """

    backend: ServerAddress
    ready: bool
    models: frozenset[str] | None = None
    sequences: frozenset[str] = frozenset()


class BackendSource:
    """The servers of the options; a file and a DNS name are read again on each call.

    What cannot be read leaves the servers as they are.
    """

    def __init__(self, options: BalanceOptions) -> None:
        self._options = options
        self._known: tuple[ServerAddress, ...] = ()

    def read(self) -> tuple[ServerAddress, ...]:
        """Return the servers. Raises InvalidBackend or OSError if none was ever known."""
        try:
            found = tuple(dict.fromkeys(self._read()))
        except (InvalidBackend, OSError) as error:
            if not self._known:
                raise
            _LOG.warning("the servers stay as they are: %s", error)
            return self._known
        self._known = found
        return found

    def _read(self) -> list[ServerAddress]:
        options = self._options
        if options.file:
            lines = Path(options.file).read_text(encoding="utf-8").splitlines()
            texts = [line.partition("#")[0].strip() for line in lines]
            found = [parse_backend(text) for text in texts if text]
            if not found:
                raise InvalidBackend(f"{options.file} names no server")
            return found
        if options.dns:
            named = parse_backend(options.dns)
            addresses = socket.getaddrinfo(named.host, named.http, type=socket.SOCK_STREAM)
            hosts = sorted({str(each[4][0]) for each in addresses})
            return [ServerAddress(host, named.http, named.grpc) for host in hosts]
        return [parse_backend(text) for text in options.backends]


class ServerPoller:
    """Requests the state of servers; remembers for 30 s which models serve sequences."""

    def __init__(self, options: BalanceOptions) -> None:
        self._threads = ThreadPoolExecutor(_POLLERS, thread_name_prefix="balance-poll")
        self._context: ssl.SSLContext | None = None
        if options.server_tls:
            self._context = ssl.create_default_context(cafile=options.server_ca or None)
            # Envoy compares the names; here the answers only choose among its servers
            self._context.check_hostname = False
        self._sequences: dict[tuple[str, str], tuple[bool, float]] = {}

    def poll(self, backends: Sequence[ServerAddress]) -> list[ServerStatus]:
        """Return the state of each server, in their order; a silent server is not ready."""
        return list(self._threads.map(self._state, backends))

    def close(self) -> None:
        """Wait for polls."""
        self._threads.shutdown()

    def _state(self, backend: ServerAddress) -> ServerStatus:
        connection = self._connection(backend)
        try:
            if self._call(connection, "GET", "/v2/health/ready")[0] != 200:
                return ServerStatus(backend, False)
            status, index = self._call(
                connection, "POST", "/v2/repository/index", json.dumps({"ready": True})
            )
            if status != 200 or not isinstance(index, list):
                return ServerStatus(backend, True)
            names = frozenset(str(each.get("name", "")) for each in index)
            serves = {name for name in names if self._serves_sequences(connection, backend, name)}
            return ServerStatus(backend, True, names, frozenset(serves))
        except (OSError, http.client.HTTPException, ValueError):
            return ServerStatus(backend, False)
        finally:
            connection.close()

    def _serves_sequences(
        self, connection: http.client.HTTPConnection, backend: ServerAddress, name: str
    ) -> bool:
        key = backend.name, name
        known = self._sequences.get(key)
        if known is None or time.monotonic() - known[1] > _CONFIG_AGE_S:
            path = f"/v2/models/{quote(name, safe='')}/config"
            status, config = self._call(connection, "GET", path)
            if status != 200 or not isinstance(config, Mapping):
                return False
            known = self._sequences[key] = "sequence_batching" in config, time.monotonic()
        return known[0]

    def _connection(self, backend: ServerAddress) -> http.client.HTTPConnection:
        if self._context is not None:
            return http.client.HTTPSConnection(
                backend.host, backend.http, timeout=TIMEOUT_S, context=self._context
            )
        return http.client.HTTPConnection(backend.host, backend.http, timeout=TIMEOUT_S)

    def _call(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: str = ""
    ) -> tuple[int, Any]:
        connection.request(method, path, body or None)
        response = connection.getresponse()
        content = response.read()
        return response.status, json.loads(content) if content else None
