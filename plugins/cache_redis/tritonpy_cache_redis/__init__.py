"""A response cache in Redis, shared by servers.

Start at `cache`; `value` is the stored format.
Plugin discovery imports this module only.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_caches() -> Mapping[str, str]:
    """Register the cache `redis`."""
    return {"redis": "tritonpy_cache_redis.cache:RedisCache"}
