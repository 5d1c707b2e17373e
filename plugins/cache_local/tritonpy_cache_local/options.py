"""Options of the cache: `--cache-config=local,size=…`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from tritonpy import Options
from tritonpy.config import ByteSize

SMALLEST = 192  # Triton's minimum, needed by its allocator


class LocalCacheOptions(Options, frozen=True):
    """The keys of `cache: {local: {…}}`. A size of at least 192 bytes is required."""

    size: Annotated[
        ByteSize,
        Meta(
            description=(
                "Bytes for cached responses including overhead, at least 192. "
                "A response takes about 620 and its data."
            )
        ),
    ] = 0

    def __post_init__(self) -> None:
        if self.size == 0:
            raise ValueError(
                "Failed to initialize LocalCache: config didn't contain a valid 'size' field."
            )
        if self.size < SMALLEST:
            raise ValueError(
                "Failed to initialize LocalCache: Could not initialize buffer in "
                "basic_managed_external_buffer constructor: "
                f"'size' must be at least {SMALLEST} bytes; got {self.size}"
            )
