"""The options of the SageMaker frontend."""

from __future__ import annotations

import os
from typing import Annotated

from msgspec import Meta, field

from tritonpy_http_api.options import HttpApiOptions

UNSPECIFIED_MODEL = "unspecified_SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"


def from_environment(name: str, default: str) -> str:
    """Return a variable of the environment; an empty one counts as unset."""
    return os.environ.get(name) or default


class SageMakerOptions(HttpApiOptions, frozen=True):
    """The options under `frontends: sagemaker:` of server.yaml.

    The defaults of the last ones come from the environment, as in Triton.
    """

    port: Annotated[int, Meta(ge=0, le=65535, description="TCP port; 0 picks a free one")] = 8080
    host: Annotated[
        str | None, Meta(description="Address to listen on; the default is what the service needs")
    ] = "0.0.0.0"
    safe_port_range: Annotated[
        str,
        Meta(
            pattern="^([0-9]+-[0-9]+)?$",
            description="Ports A-B that the other frontends may use; empty: any",
        ),
    ] = ""
    default_model: Annotated[
        str,
        Meta(description="Model of /invocations (default: $SAGEMAKER_TRITON_DEFAULT_MODEL_NAME)"),
    ] = field(
        default_factory=lambda: from_environment(
            "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME", UNSPECIFIED_MODEL
        )
    )
    inference_type: Annotated[
        str,
        Meta(
            pattern="^(infer|generate|generate_stream)$",
            description="Call of /invocations (default: $SAGEMAKER_TRITON_INFERENCE_TYPE, infer)",
        ),
    ] = field(default_factory=lambda: from_environment("SAGEMAKER_TRITON_INFERENCE_TYPE", "infer"))
    ping_mode: Annotated[
        str,
        Meta(
            pattern="^(ready|live)$",
            description="Health that /ping reports (default: $SAGEMAKER_TRITON_PING_MODE, ready)",
        ),
    ] = field(default_factory=lambda: from_environment("SAGEMAKER_TRITON_PING_MODE", "ready"))
    models_folder: Annotated[
        str, Meta(description="Folder below which SageMaker stores the models of an endpoint")
    ] = "/opt/ml/models"
    unload_timeout_s: Annotated[
        float, Meta(gt=0, description="Seconds that the unload of a model may take")
    ] = 350

    def __post_init__(self) -> None:
        """Raise ValueError for an invalid combination of options."""
        super().__post_init__()
        if self.inference_type not in {"infer", "generate", "generate_stream"}:
            raise ValueError(
                f"Invalid SAGEMAKER_TRITON_INFERENCE_TYPE '{self.inference_type}'. "
                "Must be one of: infer, generate, generate_stream."
            )
        if self.ping_mode not in {"ready", "live"}:
            raise ValueError(
                f"Invalid SAGEMAKER_TRITON_PING_MODE '{self.ping_mode}'. "
                "Must be one of: ready, live."
            )
