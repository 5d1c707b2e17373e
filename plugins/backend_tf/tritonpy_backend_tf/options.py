"""Backend options for all models: `backends: {tensorflow: {…}}` in server.yaml."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tritonpy_backend_kit.shared_model import BatchSizeOptions


class TensorFlowOptions(BatchSizeOptions, frozen=True):
    """Options with the names that Triton's `--backend-config=tensorflow,…` uses."""

    allow_soft_placement: Annotated[
        bool, msgspec.Meta(description="Run operations that a GPU does not support on the CPU.")
    ] = True
    gpu_memory_fraction: Annotated[
        float,
        msgspec.Meta(
            ge=0,
            le=1,
            description="Fraction of a GPU's memory that is allocated at once (0: as needed).",
        ),
    ] = 0.0
    version: Annotated[
        Literal[2], msgspec.Meta(description="Major version of TensorFlow; only 2 is supported.")
    ] = 2
    keras_safe_mode: Annotated[
        bool,
        msgspec.Meta(
            description=(
                "Reject Keras files that contain code, such as Lambda layers; "
                "models may override it."
            )
        ),
    ] = True
