"""Serves TensorRT engines: the backend `tensorrt` of tritonpy."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_backends() -> Mapping[str, str]:
    """Name the backend; its module is imported when the first model needs it."""
    return {"tensorrt": "tritonpy_backend_trt.backend:TensorRtBackend"}
