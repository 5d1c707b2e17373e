"""The OpenAI API for models with the input `text_input` and the output `text_output`.

Start at `frontend`, then `application` (routes), `chat` and `completions`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_frontends() -> Mapping[str, str]:
    """Register the frontend as `openai`. Its module is imported only by a server that uses it."""
    return {"openai": "tritonpy_frontend_openai.frontend:OpenAiFrontend"}
