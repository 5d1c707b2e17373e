"""Options of cloud repositories."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from tritonpy import Options
from tritonpy.config import ByteSize


class CloudOptions(Options, frozen=True):
    """Keys of `repository_options: {s3: {…}}`, or of `options` next to a repository's `url`."""

    cache_directory: Annotated[
        Path | None,
        Meta(description="Folder for fetched files (default: below the user's cache folder)."),
    ] = None
    cache_size: Annotated[
        ByteSize,
        Meta(
            gt=0,
            description=(
                "Maximum size of the cache; the least recently used files are evicted first."
            ),
        ),
    ] = 100 * 2**30
    complete_when: Annotated[
        Literal["stable", "marker"],
        Meta(
            description=(
                "When a model is complete: its files are unchanged for settle_s, "
                "or its marker file exists."
            )
        ),
    ] = "stable"
    settle_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Seconds without changes after which a model is complete; 0: immediately.",
        ),
    ] = 2.0
    completion_timeout_s: Annotated[
        float,
        Meta(
            ge=0,
            description=(
                "Seconds that server start or a load request waits for a model to be complete."
            ),
        ),
    ] = 30.0
    marker: Annotated[
        str,
        Meta(
            min_length=1,
            description=(
                "Name of the marker file in a model's folder; upload it after all other files."
            ),
        ),
    ] = "_SUCCESS"
    parallel: Annotated[
        int, Meta(ge=1, le=256, description="Number of file parts fetched concurrently.")
    ] = 8
    attempts: Annotated[
        int, Meta(ge=1, description="Attempts for a request that fails with a temporary error.")
    ] = 5
    connect_timeout_s: Annotated[
        float, Meta(gt=0, description="Seconds to wait for a connection.")
    ] = 10.0
    read_timeout_s: Annotated[
        float,
        Meta(gt=0, description="Seconds without received data after which a connection fails."),
    ] = 30.0
    longest_pause_s: Annotated[
        float,
        Meta(
            gt=0,
            description=(
                "Longest delay in seconds between polls of an unreachable store (mode poll)."
            ),
        ),
    ] = 300.0
    endpoint: Annotated[
        str, Meta(description="URL of a store other than the cloud's own, such as an emulator.")
    ] = ""
    storage: Annotated[
        dict[str, Any],
        Meta(
            description=(
                "Further arguments for fsspec's file system of this scheme, "
                "such as anon or requester_pays."
            )
        ),
    ] = field(default_factory=dict)
