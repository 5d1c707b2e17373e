"""The backend `transformer`: serves transformers with CTranslate2, tokens as they come."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_backends() -> Mapping[str, str]:
    """Name the backend; its module is imported when the first model needs it."""
    return {"transformer": "tritonpy_backend_transformer.backend:TransformerBackend"}
