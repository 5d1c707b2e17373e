"""The response cache `redis`: lookups and insertions.

The core handles threads, deadlines and outages.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Sequence
from typing import ClassVar, cast

from redis.exceptions import AuthenticationError, NoPermissionError, RedisError, ResponseError

from tritonpy import Cache, Options, StartupError, Tensor
from tritonpy_cache_redis.connections import make_client
from tritonpy_cache_redis.options import RedisCacheOptions
from tritonpy_cache_redis.value import BrokenValue, pack, unpack

log = logging.getLogger("tritonpy.cache")


class RedisCache(Cache):
    """Responses in Redis. They outlive the server and are shared by several servers.

    A server starts without Redis and uses it as soon as it is available. Permanent errors, such as
    a failed login or an untrusted certificate, fail the start. Limit the memory in Redis:
    `maxmemory` with the policy `allkeys-lru`, or `ttl`.
    """

    Options: ClassVar[type[Options]] = RedisCacheOptions
    blocking: ClassVar[bool] = True
    shared: ClassVar[bool] = True

    def __init__(self, options: RedisCacheOptions) -> None:
        super().__init__(options)
        self.threads = options.pool_size
        self.deadline_ms = options.deadline
        self._prefix = options.prefix
        self._ttl = options.ttl or None
        self._client = make_client(options)
        self._broken = 0
        self._check_connection()

    def _check_connection(self) -> None:
        where = f"{self.options.host}:{self.options.port}"
        try:
            # Not PING, because the user needs the right to GET.
            self._client.get(f"{self._prefix}start")
        except (RedisError, OSError) as error:
            if _is_final(error):
                raise StartupError(f"Failed to initialize RedisCache: {where}: {error}") from error
            log.warning("response cache: Redis at %s is not available yet: %s", where, error)
        else:
            log.info("response cache in Redis at %s", where)

    def lookup(self, key: bytes) -> Sequence[Tensor] | None:
        value = cast("bytes | None", self._client.get(self._prefix + key.hex()))
        if value is None:
            return None
        try:
            return unpack(value)
        except BrokenValue as error:
            self._broken += 1
            log.log(
                logging.WARNING if self._broken == 1 else logging.DEBUG,
                "ignoring a value in Redis: %s",
                error,
            )
            return None

    def insert(self, key: bytes, outputs: Sequence[Tensor]) -> None:
        self._client.set(self._prefix + key.hex(), pack(outputs), ex=self._ttl)

    def close(self) -> None:
        self._client.connection_pool.disconnect()


def _is_final(error: BaseException) -> bool:
    """Return whether retrying cannot help: the login, a right or a certificate was rejected."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, (AuthenticationError, NoPermissionError, ssl.SSLError)):
            return True
        if isinstance(seen, ResponseError) and str(seen).startswith(
            ("NOAUTH", "WRONGPASS", "ERR invalid DB", "DB index")
        ):
            return True
        seen = seen.__cause__ or seen.__context__
    return False
