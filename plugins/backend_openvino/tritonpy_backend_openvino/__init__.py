"""OpenVINO backend for tritonpy (backend name `openvino`).

Start at `backend`; `shared_model` holds the compiled models.
OpenVINO is imported when the first model loads.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_backends() -> Mapping[str, str]:
    """Register the backend class by name, so that its module is imported with the first model."""
    return {"openvino": "tritonpy_backend_openvino.backend:OpenVinoBackend"}
