"""Backend options for all models: `backends: {tensorrt: {…}}` in server.yaml."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tritonpy import Options


class TensorRtOptions(Options, frozen=True):
    """Options with the names that Triton's `--backend-config=tensorrt,…` uses."""

    coalesce_request_input: Annotated[
        bool,
        msgspec.Meta(
            description=(
                "Copy the inputs of requests at once if they are adjacent in memory, "
                "as in one shared memory region."
            )
        ),
    ] = False
    execution_policy: Annotated[
        Literal["DEVICE_BLOCKING", "BLOCKING"],
        msgspec.Meta(
            description=(
                "DEVICE_BLOCKING: one of a model's instances on a GPU launches work at a time; "
                "BLOCKING: all may at any time."
            )
        ),
    ] = "DEVICE_BLOCKING"
    plugins: Annotated[
        str,
        msgspec.Meta(
            description="Libraries with TensorRT plugins for engines, separated by semicolons."
        ),
    ] = ""
    version_compatible: Annotated[
        bool,
        msgspec.Meta(
            description=(
                "Load engines of other TensorRT versions; these contain code that runs in the "
                "server, so use it only for trusted models."
            )
        ),
    ] = False
    runtime: Annotated[
        Literal["any", "full", "lean"],
        msgspec.Meta(
            description=(
                "TensorRT runtime for engines: the package tensorrt (full) or tensorrt_lean (lean)."
            )
        ),
    ] = "any"
    default_max_batch_size: Annotated[
        int | None,
        msgspec.Meta(description="No effect: an engine's profiles determine the largest batch."),
    ] = None
