"""What a repository is configured with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from tritonpy import ByteSize, Options


class CloudOptions(Options, frozen=True):
    """The keys of `repository_options: {s3: {…}}`, or of `options` beside one repository's `url`."""

    cache_directory: Annotated[
        Path | None,
        Meta(description="Where fetched files are kept; if not given, below the user's folder for caches."),
    ] = None
    cache_size: Annotated[
        ByteSize, Meta(gt=0, description="Most that is kept there; what was not used for longest goes first.")
    ] = 100 * 2**30
    complete_when: Annotated[
        Literal["stable", "marker"],
        Meta(description="A model is whole when two looks at it agree, or when its marker file is there."),
    ] = "stable"
    settle_s: Annotated[
        float, Meta(ge=0, description="Seconds between two looks that must agree; 0 takes a model as it is found.")
    ] = 2.0
    patience_s: Annotated[
        float, Meta(ge=0, description="Seconds for which the start, or a load request, waits for a model to be whole.")
    ] = 30.0
    marker: Annotated[
        str,
        Meta(min_length=1, description="Name of the marker file in a model's folder, to be uploaded after all others."),
    ] = "_SUCCESS"
    parallel: Annotated[int, Meta(ge=1, le=256, description="Parts of files that are fetched at the same time.")] = 8
    attempts: Annotated[
        int, Meta(ge=1, description="How often a request is sent that fails for a reason that may pass.")
    ] = 5
    connect_timeout_s: Annotated[float, Meta(gt=0, description="Longest wait for a connection.")] = 10.0
    read_timeout_s: Annotated[
        float, Meta(gt=0, description="Longest time in which nothing at all arrives from a connection.")
    ] = 30.0
    longest_pause_s: Annotated[
        float, Meta(gt=0, description="Longest pause between two looks at a store that cannot be reached (mode poll).")
    ] = 300.0
    endpoint: Annotated[
        str, Meta(description="URL of the store, where it is not the cloud's own: another server, an emulator.")
    ] = ""
    storage: Annotated[
        dict[str, Any],
        Meta(description="Further arguments for fsspec's file system of this scheme, such as anon or requester_pays."),
    ] = field(default_factory=dict)
