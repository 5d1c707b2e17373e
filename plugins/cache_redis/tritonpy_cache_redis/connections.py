"""The Redis client with its connection pool."""

from __future__ import annotations

import os
import socket
import ssl
from typing import Any

from redis import BlockingConnectionPool, Connection, Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as NoConnection
from redis.retry import Retry

from tritonpy import StartupError
from tritonpy_cache_redis.options import RedisCacheOptions

USER, PASSWORD = "TRITONCACHE_REDIS_USERNAME", "TRITONCACHE_REDIS_PASSWORD"


class TlsConnection(Connection):
    """A connection with a shared TLS context. It may expect another name than the host's."""

    def __init__(self, *, context: ssl.SSLContext, expected_name: str, **options: Any) -> None:
        super().__init__(**options)  # type: ignore[no-untyped-call]
        self._context = context
        self._expected_name = expected_name

    def _connect(self) -> socket.socket:
        plain: socket.socket = super()._connect()  # type: ignore[no-untyped-call]
        try:
            return self._context.wrap_socket(plain, server_hostname=self._expected_name)
        except BaseException:
            plain.close()
            raise


def make_client(options: RedisCacheOptions) -> Redis:
    """Return a client, which connects on use and reconnects.

    Raises `StartupError` for invalid TLS files.
    """
    settings: dict[str, Any] = {
        "host": options.host,
        "port": options.port,
        "db": options.db,
        "username": options.user or os.environ.get(USER) or None,
        "password": str(options.password) or os.environ.get(PASSWORD) or None,
        "socket_connect_timeout": _seconds(options.connect_timeout),
        "socket_timeout": _seconds(options.socket_timeout),
        "socket_keepalive": True,
        # Retry once for a connection that Redis closed. Timeouts are not retried: the request does
        # not wait that long.
        "retry": Retry(NoBackoff(), 1, supported_errors=(NoConnection,)),
    }
    kind: type[Connection] = Connection
    if options.tls_enabled:
        kind = TlsConnection
        settings |= {"context": _context(options), "expected_name": options.sni or options.host}
    pool = BlockingConnectionPool(  # type: ignore[no-untyped-call]
        max_connections=options.pool_size,
        timeout=_seconds(options.wait_timeout),
        connection_class=kind,
        **settings,
    )
    return Redis(connection_pool=pool)


def _context(options: RedisCacheOptions) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(
            cafile=options.cacert and str(options.cacert),
            capath=options.cacert_dir and str(options.cacert_dir),
        )
        if options.cert is not None:
            context.load_cert_chain(options.cert, options.key)
    except OSError as error:  # ssl.SSLError is one
        raise StartupError(
            f"Failed to initialize RedisCache: invalid TLS files: {error}"
        ) from error
    return context


def _seconds(milliseconds: int) -> float | None:
    return milliseconds / 1000 or None
