"""What the backend is configured with, for all its models: `backends: {tensorrt: {…}}` of server.yaml."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tritonpy import Options


class TensorRtOptions(Options, frozen=True):
    """Options of the backend, under the names that Triton's `--backend-config=tensorrt,…` gives them."""

    coalesce_request_input: Annotated[
        bool,
        msgspec.Meta(
            description="Copy the inputs of requests that lie one behind the other in memory, as in one shared memory region, in one piece."
        ),
    ] = False
    execution_policy: Annotated[
        Literal["DEVICE_BLOCKING", "BLOCKING"],
        msgspec.Meta(
            description="DEVICE_BLOCKING: of a model's instances on a GPU one launches work at a time; BLOCKING: all whenever they can."
        ),
    ] = "DEVICE_BLOCKING"
    plugins: Annotated[
        str, msgspec.Meta(description="Libraries of TensorRT plugins that engines need, separated by semicolons.")
    ] = ""
    version_compatible: Annotated[
        bool,
        msgspec.Meta(
            description="Load engines built with other versions of TensorRT, which bring code that is run: only where you trust the models."
        ),
    ] = False
    runtime: Annotated[
        Literal["any", "full", "lean"],
        msgspec.Meta(description="Which TensorRT runs engines: the package tensorrt (full) or tensorrt_lean (lean)."),
    ] = "any"
    default_max_batch_size: Annotated[
        int | None, msgspec.Meta(description="Without effect: an engine's profiles say how large a batch may be.")
    ] = None
