"""The backend `tensorflow`: serves SavedModels, frozen graphs and Keras files with TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_backends() -> Mapping[str, str]:
    """Name the backend; its module is imported when the first model needs it, TensorFlow when one is loaded."""
    return {"tensorflow": "tritonpy_backend_tf.backend:TensorFlowBackend"}
