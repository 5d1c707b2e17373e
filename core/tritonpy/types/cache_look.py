"""What a model's response cache knows of a request on its way."""

from __future__ import annotations

import msgspec


class CacheLook(msgspec.Struct, eq=False, gc=False):
    """Made where a look-up begins. `size` of the inputs is in bytes; `key` is None where nothing will be inserted; times are in ns."""

    size: int
    key: bytes | None = None
    hit: bool = False
    start_ns: int = 0
    lookup_ns: int = 0
    insertion_ns: int = 0  # of an insertion before the answer

    @property
    def cache_ns(self) -> int:
        """What the cache cost the request."""
        return self.lookup_ns + self.insertion_ns
