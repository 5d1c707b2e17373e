"""Backend options for all models: `backends: {pytorch: {…}}` in server.yaml."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tritonpy_backend_kit.shared_model import BatchSizeOptions


class TorchOptions(BatchSizeOptions, frozen=True):
    """Options of the PyTorch backend."""

    allow_pickles: Annotated[
        bool,
        msgspec.Meta(
            description=(
                "Load pickled models and weights that execute code, unless a model's parameter "
                "ALLOW_PICKLES is false."
            )
        ),
    ] = False
