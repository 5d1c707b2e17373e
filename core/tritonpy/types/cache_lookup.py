"""The state of a request's response-cache lookup."""

from __future__ import annotations

import msgspec


class CacheLookup(msgspec.Struct, eq=False, gc=False):
    """The state of one request, created when its lookup begins.

    `size` is that of the inputs in bytes. `key` is None if no response will be inserted. Times are
    in ns.
    """

    size: int
    key: bytes | None = None
    hit: bool = False
    start_ns: int = 0
    lookup_ns: int = 0
    insertion_ns: int = 0  # of an insertion before the response is sent

    @property
    def cache_ns(self) -> int:
        """The time that the cache added to the request."""
        return self.lookup_ns + self.insertion_ns
