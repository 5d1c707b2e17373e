"""What the backend is configured with, for all its models: `backends: {openvino: {…}}` of server.yaml."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tritonpy import Options


class OpenVinoOptions(Options, frozen=True):
    """Options of the backend."""

    default_max_batch_size: Annotated[
        int | None,
        msgspec.Meta(description="max_batch_size of a model that can batch and gives none (default: the server's)."),
    ] = None
    cache_dir: Annotated[
        str,
        msgspec.Meta(description="A folder where compiled models are kept, so that they load quickly the next time."),
    ] = ""
