"""Backend options for all models: `backends: {openvino: {…}}` in server.yaml."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tritonpy_backend_kit.shared_model import BatchSizeOptions


class OpenVinoOptions(BatchSizeOptions, frozen=True):
    """Options of the OpenVINO backend."""

    cache_dir: Annotated[
        str,
        msgspec.Meta(
            description="Folder for compiled models, which then load faster the next time."
        ),
    ] = ""
