"""ONNX Runtime backend for tritonpy (backend name `onnxruntime`).

Start at `backend`; `shared_model` holds the sessions.
Only `runtime` imports ONNX Runtime, when the first model loads.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_backends() -> Mapping[str, str]:
    """Register the backend class by name, so that its module is imported with the first model."""
    return {"onnxruntime": "tritonpy_backend_onnx.backend:OnnxRuntimeBackend"}
