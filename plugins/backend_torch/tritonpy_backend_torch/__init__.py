"""The backend `pytorch`: serves PyTorch models in all the forms in which they are saved."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_backends() -> Mapping[str, str]:
    """Name the backend; its module is imported when the first model needs it, PyTorch when that is loaded."""
    return {"pytorch": "tritonpy_backend_torch.backend:TorchBackend"}
