"""Backend options for all models: `backends: {openvino: {…}}` in server.yaml."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tritonpy import Options


class OpenVinoOptions(Options, frozen=True):
    """Options of the OpenVINO backend."""

    default_max_batch_size: Annotated[
        int | None,
        msgspec.Meta(
            description=(
                "max_batch_size of models that support batching and set none (default: "
                "the server's)."
            )
        ),
    ] = None
    cache_dir: Annotated[
        str,
        msgspec.Meta(
            description="Folder for compiled models, which then load faster the next time."
        ),
    ] = ""
