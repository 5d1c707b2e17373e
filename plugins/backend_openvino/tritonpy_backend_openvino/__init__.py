"""The backend `openvino`: serves models with OpenVINO."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_backends() -> Mapping[str, str]:
    """Name the backend; its module is imported when the first model needs it."""
    return {"openvino": "tritonpy_backend_openvino.backend:OpenVinoBackend"}
