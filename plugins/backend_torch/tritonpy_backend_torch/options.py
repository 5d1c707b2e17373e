"""Backend options for all models: `backends: {pytorch: {…}}` in server.yaml."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tritonpy import Options


class TorchOptions(Options, frozen=True):
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
    default_max_batch_size: Annotated[
        int | None,
        msgspec.Meta(
            description=(
                "max_batch_size of models that support batching and set none (default: "
                "the server's)."
            )
        ),
    ] = None
