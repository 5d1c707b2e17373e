"""A response cache in the server's memory.

Start at `cache`; `store` limits the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_caches() -> Mapping[str, str]:
    """Register the cache `local`."""
    return {"local": "tritonpy_cache_local.cache:LocalCache"}
