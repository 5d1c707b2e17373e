"""PyTorch backend for tritonpy (backend name `pytorch`).

Serves TorchScript models, torch.export programs, AOTInductor packages, Python classes and pickles.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_backends() -> Mapping[str, str]:
    """Register the backend class by name.

    Its module is imported with the first model, PyTorch when a model is loaded.
    """
    return {"pytorch": "tritonpy_backend_torch.backend:TorchBackend"}
