"""The backend `transformer`: transformer models in CTranslate2, with streamed text.

Start at `backend`, then `lane` (batches of texts) and `generation`.
CTranslate2 is imported when the first model loads.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_backends() -> Mapping[str, str]:
    """Return the backend's class path; the module is imported when the first model needs it."""
    return {"transformer": "tritonpy_backend_transformer.backend:TransformerBackend"}
