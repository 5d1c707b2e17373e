"""What the backend is configured with, for all its models: `backends: {pytorch: {…}}` of server.yaml."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tritonpy import Options


class TorchOptions(Options, frozen=True):
    """Options of the backend."""

    allow_pickles: Annotated[
        bool,
        msgspec.Meta(
            description="Load pickled models and weights that execute code of their own, unless a model's parameter ALLOW_PICKLES says no."
        ),
    ] = False
    default_max_batch_size: Annotated[
        int | None,
        msgspec.Meta(description="max_batch_size of a model that can batch and gives none (default: the server's)."),
    ] = None
