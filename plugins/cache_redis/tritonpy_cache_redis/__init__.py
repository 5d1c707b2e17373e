"""A response cache for tritonpy that servers share through Redis. Discovery imports this module only; the client is loaded with the cache itself."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_caches() -> Mapping[str, str]:
    """Register the cache `redis`."""
    return {"redis": "tritonpy_cache_redis.cache:RedisCache"}
