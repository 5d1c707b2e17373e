"""What the backend is configured with, for all its models: `backends: {tensorflow: {…}}` of server.yaml."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tritonpy import Options


class TensorFlowOptions(Options, frozen=True):
    """Options of the backend, under the names that Triton's `--backend-config=tensorflow,…` gives them."""

    allow_soft_placement: Annotated[
        bool, msgspec.Meta(description="An operation that a GPU cannot run may run on the CPU.")
    ] = True
    gpu_memory_fraction: Annotated[
        float,
        msgspec.Meta(ge=0, le=1, description="Part of a GPU's memory that is taken at once (0: as much as is needed)."),
    ] = 0.0
    version: Annotated[Literal[2], msgspec.Meta(description="The major version of TensorFlow: there is one.")] = 2
    keras_safe_mode: Annotated[
        bool, msgspec.Meta(description="Refuse Keras files that carry code, such as Lambda layers; a model may differ.")
    ] = True
    default_max_batch_size: Annotated[
        int | None,
        msgspec.Meta(description="max_batch_size of a model that can batch and gives none (default: the server's)."),
    ] = None
