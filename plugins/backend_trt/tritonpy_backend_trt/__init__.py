"""TensorRT backend for tritonpy (backend name `tensorrt`).

Start at `backend`, then `shared_model` (engines) and `pipeline` (executions in flight).
TensorRT and CUDA are imported when the first model loads.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_backends() -> Mapping[str, str]:
    """Register the backend class by name, so that its module is imported with the first model."""
    return {"tensorrt": "tritonpy_backend_trt.backend:TensorRtBackend"}
