"""Amazon SageMaker's endpoints: `/ping`, `/invocations` and multi-model endpoints.

Start at `frontend`, then `dialect` (the routes) and `model_store` (multi-model endpoints).
SageMaker starts the program `serve` in a container.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_frontends() -> Mapping[str, str]:
    """Register the frontend as `sagemaker`."""
    return {"sagemaker": "tritonpy_frontend_sagemaker.frontend:SageMakerFrontend"}
