"""TensorFlow backend for tritonpy (backend name `tensorflow`).

Serves SavedModels, frozen graphs and Keras files.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_backends() -> Mapping[str, str]:
    """Register the backend class by name.

    Its module is imported with the first model, TensorFlow when a model is opened.
    """
    return {"tensorflow": "tritonpy_backend_tf.backend:TensorFlowBackend"}
